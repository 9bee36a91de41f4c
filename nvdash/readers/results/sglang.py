"""SGLang: bench_serving with the server's own configuration inside, bench_one_batch and bench_one_batch_server.

`server_info` holds what was requested, `internal_states` what is in effect. `concurrency` is the mean that was reached.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nvdash.readers.aliases import controls
from nvdash.readers.record import Reading, Remark, Run, make_run, to_number
from nvdash.readers.results.common import MS_PER_S, Record, distribution, items, mapping, measured_runs, ratio, scaled

_LATENCY_KEYS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"}


def serving(records: Sequence[Record], where: str) -> Reading:
    """`bench_serving`: one run per line."""
    runs, warnings = measured_runs(where, (_serving_values(record, where) for record in records))
    return Reading(runs, warnings=warnings)


def _serving_values(record: Record, where: str) -> dict[str, Any]:
    completed = record.get("completed")
    rate = record.get("request_rate")
    return {
        "kind": "serving",
        "tag": record.get("tag"),
        "model": record.get("model") or record.get("model_id"),
        "framework": "sglang" if str(record.get("backend", "")).startswith("sglang") else None,
        "backend": record.get("backend"),
        "dataset": record.get("dataset_name"),
        **_targets(record),
        "strategy": rate if isinstance(rate, str) and to_number(rate) is None else None,
        "request_rate_rps": rate,
        "max_concurrency": record.get("max_concurrency"),
        "num_prompts": record.get("num_prompts"),
        "mean_concurrency": record.get("concurrency"),
        "duration_s": record.get("duration"),
        "requests_completed": completed,
        "input_tokens_total": record.get("total_input_tokens"),
        "output_tokens_total": record.get("total_output_tokens"),
        "isl_mean": ratio(record.get("total_input_tokens"), completed),
        "osl_mean": ratio(record.get("total_output_tokens"), completed),
        "request_throughput_rps": record.get("request_throughput"),
        "input_tok_s": record.get("input_throughput"),
        "output_tok_s": record.get("output_throughput"),
        "total_tok_s": record.get("total_throughput", record.get("total_token_throughput")),
        "peak_output_tok_s": record.get("max_output_tokens_per_s"),
        "peak_concurrent_requests": record.get("max_concurrent_requests"),
        "spec_decode_acceptance_length": _drafted(record.get("accept_length")),
        **_latencies(record),
        **_server_values(record.get("server_info"), where),
    }


_DRAWN = ("random", "random-ids", "image", "random-image")
"""Datasets that are drawn with the random lengths; a line holds these arguments whatever its dataset was."""


def _targets(record: Record) -> dict[str, Any]:
    """The lengths that were asked for, as far as the dataset heeded them."""
    dataset = record.get("dataset_name")
    if dataset in _DRAWN:
        return {"isl_target": record.get("random_input_len"), "osl_target": record.get("random_output_len")}
    return {"osl_target": record.get("sharegpt_output_len") if dataset == "sharegpt" else None}


def _latencies(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for latency, key in _LATENCY_KEYS.items():

        def value_of(name: str, key: str = key) -> Any:
            return record.get(f"{'median' if name == 'p50' else name}_{key}_ms")

        fields |= distribution(latency, value_of)
    return fields


def _server_values(info: Any, where: str) -> dict[str, Any]:
    """Controls of one server, or of the two sides of a disaggregated one."""
    if isinstance(info, Mapping) and any(isinstance(info.get(side), list) for side in ("prefill", "decode")):
        sides = {side: items(info.get(side)) for side in ("prefill", "decode")}
        found: dict[str, Any] = {side: _side(states[0], where) for side, states in sides.items() if states}
        servers = [_server(state) for states in sides.values() for state in states]
        common = {name: _alike(server.get(name) for server in servers) for name in ("model", "version", "framework")}
        return {**common, **found, "disaggregated": True}
    return _server(mapping(info)) if info else {}


def _alike(stated: Iterable[Any]) -> Any:
    """What all of several servers say; None when they differ."""
    said = list(stated)
    return said[0] if said and all(value == said[0] for value in said) else None


def _side(info: Record, where: str) -> Run:
    return make_run(where, **_server(info))


def _server(info: Record) -> dict[str, Any]:
    states = items(info.get("internal_states"))
    state = states[0] if states else {}
    effective = {**info, **{key: value for key, value in state.items() if value is not None}}
    memory = mapping(state.get("memory_usage"))
    prefill, decode = effective.get("prefill_attention_backend"), effective.get("decode_attention_backend")
    both = effective.get("attention_backend")
    disabled = effective.get("disable_radix_cache")
    return {
        **{name: value for name, value in controls(effective).items() if name not in _OWN_WORDS},
        "framework": "sglang",
        "version": info.get("version"),
        "model": effective.get("model_path"),
        "weight_format": effective.get("quantization"),
        "kv_cache_dtype_requested": info.get("kv_cache_dtype"),
        "attention_backend": prefill if prefill and prefill == decode else both,
        "attention_backend_prefill": prefill or both,
        "attention_backend_decode": decode or both,
        "scheduling_policy": effective.get("schedule_policy"),
        "radix_cache_enabled": not disabled if isinstance(disabled, bool) else None,
        "kv_tokens": memory.get("token_capacity", info.get("max_total_num_tokens")),
        "weights_gib": memory.get("weight"),
        "kv_allocated_gib": memory.get("kvcache"),
        "cuda_graph_gib": memory.get("graph"),
    }


def server_info(records: Sequence[Record], where: str) -> Reading:
    """What a running server answers under `/server_info`: its configuration, requested and in effect."""
    return Reading(server=make_run(where, **_server(records[0])).values)


_OWN_WORDS = frozenset({"dataset", "workload", "request_rate_rps", "moe_backend", "prefix_hit_rate", "quantization"})
"""Names that a server's settings do not state about a run."""


def one_batch(records: Sequence[Record], where: str) -> Reading:
    """`bench_one_batch`: seconds of one prefill and of the median decode step."""
    runs, warnings = measured_runs(where, map(_one_batch_values, records))
    return Reading(runs, warnings=warnings)


def _batch_values(record: Record) -> dict[str, Any]:
    return {
        "kind": "latency",
        "framework": "sglang",
        "tag": record.get("run_name"),
        "batch_size": record.get("batch_size"),
        "isl_target": record.get("input_len"),
        "osl_target": record.get("output_len"),
        "total_tok_s": record.get("overall_throughput"),
    }


def _one_batch_values(record: Record) -> dict[str, Any]:
    return {
        **_batch_values(record),
        "prefill_ms": scaled(record.get("prefill_latency"), MS_PER_S),
        "prefill_tok_s": record.get("prefill_throughput"),
        "tpot_p50_ms": scaled(record.get("median_decode_latency"), MS_PER_S),
        "decode_tok_s": record.get("median_decode_throughput"),
        "latency_ms": scaled(record.get("total_latency"), MS_PER_S),
    }


def one_batch_server(records: Sequence[Record], where: str) -> Reading:
    """`bench_one_batch_server`: seconds of one batch through the server."""
    runs, warnings = measured_runs(where, map(_one_batch_server_values, records))
    phases = (
        Remark("phases", "the stated rates are not those of the whole batch; kept where a phase was timed", number)
        for number, run in enumerate(runs)
        if run.get("output_tok_s") is None
    )
    return Reading(runs, warnings=(*warnings, *phases))


SAME_RATE = 0.02
"""How far a rate may lie from tokens over latency and still be that of the whole batch."""


def _one_batch_server_values(record: Record) -> dict[str, Any]:
    """One batch; input may be divided by the time to the first tokens, and output by the rest of it."""
    hits, rate = to_number(record.get("cache_hit_rate")), to_number(record.get("spec_accept_rate"))
    batch, length, seconds, stated = (
        to_number(record.get(name)) for name in ("batch_size", "output_len", "latency", "output_throughput")
    )
    whole = batch * length / seconds if batch and length and seconds else None
    over_all = whole is not None and stated is not None and abs(stated / whole - 1) <= SAME_RATE
    timed = not over_all and record.get("last_ttft") is not None
    return {
        **_batch_values(record),
        "latency_ms": scaled(record.get("latency"), MS_PER_S),
        "ttft_ms": scaled(record.get("last_ttft"), MS_PER_S),
        "input_tok_s": record.get("input_throughput") if over_all else None,
        "output_tok_s": stated if over_all else None,
        "prefill_tok_s": record.get("input_throughput") if timed else None,
        "decode_tok_s": record.get("steady_state_output_throughput") or (stated if timed else None),
        "spec_decode_acceptance_length": _drafted(record.get("spec_accept_length"), record.get("acc_length")),
        "spec_decode_acceptance_rate_pct": rate * 100 if rate is not None and 0 <= rate <= 1 else None,
        "prefix_hit_rate": hits if hits is not None and 0 <= hits <= 1 else None,
    }


def _drafted(*lengths: Any) -> float | None:
    """The tokens per step with drafts; -1 says that there were none."""
    return next((number for length in lengths if (number := to_number(length)) is not None and number > 0), None)
