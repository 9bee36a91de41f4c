"""Does my workload fit, which pool binds, and what would a smaller cache or smaller weights really buy.

Weights and cache are never one number. What is not measured is a range; an answer holds where both ends agree.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nvdash.answers.envelope import envelope
from nvdash.answers.memory_advice import advice, binding, gains
from nvdash.answers.memory_parts import REFUSING, as_stored, budget_of, pools_of, support_of
from nvdash.answers.memory_question import MemoryQuestion, memory_question
from nvdash.footprint.allocator import replay
from nvdash.footprint.request import Allocation
from nvdash.footprint.solve import ends
from nvdash.footprint.weights import Weights

if TYPE_CHECKING:
    from nvdash.footprint.budget import Budget

YES, NO, UNKNOWN = 0, 1, 3


def memory(question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one memory question; keys are the flags of `memory` with underscores."""
    if question.get("log"):
        from nvdash.answers.memory_log import memory_of_log

        return memory_of_log(question)
    return answer_of(memory_question(question))


def answer_of(asked: MemoryQuestion) -> dict[str, Any]:
    """The answer to a question whose names are looked up."""
    support = support_of(asked)
    asked = as_stored(asked, support)
    shape = replay(asked.layout, asked.request)
    share = budget_of(asked)
    pools = pools_of(asked, share)
    spans = ends(asked.layout, asked.request, pools)
    bound = binding(asked, spans, pools)
    won = gains(asked)
    return envelope(
        "memory",
        dict(asked.echo),
        **weights_keys(asked.weights),
        **cache_keys(shape, spans, pools),
        binding_pool=bound.pool,
        binding_reason=bound.reason,
        fits=bound.fits,
        requests_that_fit=bound.requests,
        precheck=precheck_keys(spans),
        items=item_rows(share, pools, spans),
        support=support,
        gain=won,
        advice=advice(asked, bound, won, support, spans, pools),
        solve=solution(asked, pools),
        decode_bound=decode_bound(asked),
        resolved={"weights": asked.weights_word, "kv_cache_dtype": _cache_word(asked)},
        checkpoint=asked.checkpoint.repository if asked.checkpoint else None,
        gpu=gpu_keys(asked),
        notes=[*asked.notes, *_open_type(asked)],
    )


def solution(asked: MemoryQuestion, pools: Sequence[tuple[int, ...]]) -> dict[str, Any] | None:
    """What `--solve` asks for; None when it was not asked."""
    if asked.solve is None:
        return None
    from nvdash.answers.memory_solve import solved

    return solved(asked, pools)


def exit_code(answer: Mapping[str, Any]) -> int:
    """0 it fits, 1 it does not fit or would not run as asked, 3 it cannot be said."""
    if answer.get("predicted_against_printed") is not None:
        decided = [row for row in answer["predicted_against_printed"] if row["consistent"] is not None]
        unexplained = any(row["consistent"] is False and not row["cause"] for row in decided)
        return NO if unexplained else YES if decided else UNKNOWN
    support = answer["support"]
    if answer["fits"] is False or (support and support["verdict"] in REFUSING):
        return NO
    return UNKNOWN if answer["fits"] is None else YES


def weights_keys(weights: Weights | None) -> dict[str, Any]:
    """Bytes on the fullest rank, where they come from, and the bound that 4.5 bits per parameter is."""
    if weights is None:
        return {"weights_bytes": None, "weights_source": None, "weights": None}
    whole = {
        "bytes_low": weights.low_bytes,
        "bytes_high": weights.high_bytes,
        "total_bytes": weights.total_bytes,
        "parameters": weights.parameters,
        "lower_bound_4_5_bits_bytes": weights.lower_bound_bytes,
        "by_component": dict(weights.by_component),
        "by_stage": list(weights.by_stage),
        "note": weights.note,
    }
    return {"weights_bytes": weights.rank_bytes, "weights_source": weights.source, "weights": whole}


def cache_keys(shape: Allocation, spans: Sequence[Allocation], pools: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    """What one token costs and how many fit; a single number only where the memory is one number."""
    exact = spans[0] if len(spans) == 1 else None
    low, high = (spans[0], spans[-1]) if spans else (None, None)
    found = {
        "kv_bytes_per_token": shape.bytes_per_token,
        "formula": shape.formula_text,
        "formula_terms": [{"kind": term.kind, "text": term.text, "bytes": term.total} for term in shape.formula],
        "available_kv_bytes": min(pools[len(pools) // 2]) if pools else None,
        "available_kv_bytes_low": min(pools[0]) if pools else None,
        "available_kv_bytes_high": min(pools[-1]) if pools else None,
        "block_size": shape.block_size,
        "bytes_per_block": shape.bytes_per_block,
        "blocks_per_request": shape.blocks_per_request,
        "predicted_tokens": exact.predicted_tokens if exact else None,
        "allocated_bytes": None,
        "kv_tokens_rule": shape.kv_tokens_rule,
        "state_bytes": shape.state_bytes,
        "pools": dict(exact.pools) if exact else {},
        "limiting_rank": exact.limiting_rank if exact else None,
        "groups": [group_row(group) for group in shape.groups],
        "rule": shape.rule,
        "assumed": list(shape.assumed),
        "explain": list((exact or shape).explain),
    }
    for name in ("num_blocks", "kv_tokens", "max_concurrency"):
        found[name] = getattr(exact, name) if exact else None
        found[f"{name}_low"], found[f"{name}_high"] = (getattr(end, name) if end else None for end in (low, high))
    return found


def group_row(group: Any) -> dict[str, Any]:
    """One group of layers that share a block table."""
    names = ("kind", "layers", "page_bytes", "block_size", "blocks_per_request", "padding_layers", "padding_bytes")
    return {name: getattr(group, name) for name in names}


def precheck_keys(spans: Sequence[Allocation]) -> dict[str, Any] | None:
    """The release's own start-up check, where it refuses at an end of the range."""
    checks = [span.precheck for span in spans if span.precheck is not None]
    refused = [check for check in checks if check.refused]
    if not refused:
        return None
    first = refused[0]
    return {
        "refused": True if len(refused) == len(spans) else None,
        "reason": first.reason,
        "needed_bytes": first.needed_bytes,
        "available_bytes": first.available_bytes,
        "reserved_bytes": first.reserved_bytes,
        "since": first.reserved_since,
    }


def item_rows(
    share: "Budget | None", pools: Sequence[tuple[int, ...]], spans: Sequence[Allocation]
) -> list[dict[str, Any]]:
    """Every line of the budget, then the cache that grows in what is left."""
    rows = [item.as_dict() for item in share.items] if share else []
    if not pools:
        return rows
    low, middle, high = min(pools[0]), min(pools[len(pools) // 2]), min(pools[-1])
    source, words = (share.source, share.detail) if share else ("user", "given with --available-kv-gib")
    cache = {"item": "kv_cache", "kind": "grows", "bytes": middle, "low_bytes": low, "high_bytes": high}
    return [*rows, {**cache, "source": source, "detail": words}]


def decode_bound(asked: MemoryQuestion) -> dict[str, Any] | None:
    """The least time of a decode step for the asked context and requests; None where something is not known."""
    if asked.gpu is None or asked.gpu.bandwidth_gbs is None or asked.weights is None or asked.context is None:
        return None
    from nvdash.footprint.roofline import DecodeBound, cache_read, weights_read

    requests = asked.concurrency or 1
    live = requests * cache_read(asked.layout, asked.request, asked.config, asked.context)
    bound = DecodeBound(weights_read(asked.weights, asked.config), live, asked.gpu.bandwidth_gbs)
    return bound.as_dict(requests)


def gpu_keys(asked: MemoryQuestion) -> dict[str, Any] | None:
    """The GPU as the answer took it, with what is uncertain about it."""
    gpu = asked.gpu
    if gpu is None:
        return None
    return {
        "id": gpu.id,
        "name": gpu.name,
        "arch": gpu.arch,
        "total_bytes_low": gpu.memory_low_bytes,
        "total_bytes_high": gpu.memory_high_bytes,
        "total_source": gpu.memory_source,
        "bandwidth_gbs": gpu.bandwidth_gbs,
        "confidence": gpu.confidence,
        "unverified": list(gpu.unverified),
        "note": gpu.note,
    }


def _open_type(asked: MemoryQuestion) -> list[str]:
    """A note where the cache has the model's own type and the config names none."""
    if asked.layout.dtype_known or asked.request.kv_cache_dtype != "auto":
        return []
    return ["the config names no type: the cache is counted at 16 bits, for which bfloat16 stands in the formula"]


def _cache_word(asked: MemoryQuestion) -> str:
    flag = asked.request.kv_cache_dtype
    return asked.layout.dtype if flag == "auto" else flag
