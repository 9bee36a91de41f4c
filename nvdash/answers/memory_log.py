"""`memory --log`: what the allocator predicts for a serving log, beside what the log printed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvdash.answers.envelope import envelope
from nvdash.answers.memory_names import named_model
from nvdash.answers.memory_question import MemoryQuestion, memory_question
from nvdash.answers.memory_served import as_served, told, unread_part, with_drafter
from nvdash.errors import UsageError
from nvdash.footprint.allocator import replay
from nvdash.footprint.from_log import (
    ROUNDING_GIB,
    SCALES_APART,
    TOLERANCE,
    VALUES_ONLY,
    Printed,
    Row,
    compare,
    formula_cause,
)
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.vllm_rules import RANGES, version
from nvdash.targets import GIB

RULE_RELEASES = {"concurrency": None, "blocks": "0.19.0"}
"""Whose rules are used when a log prints no version, by how it counts its tokens; None: the newest rules."""
FIRST_ENGINE = ("requested_gib", "cpu_blocks")
"""Facts that only logs of vLLM's first engine state."""
LAST_OF_FIRST_ENGINE = "0.8.0"
TAKEN = {
    "model": ("model",),
    "framework": ("framework",),
    "release": ("version",),
    "tp": ("attention_tp", "tp"),
    "pp": ("pp",),
    "dcp": ("dcp",),
    "max_model_len": ("max_model_len", "context_len"),
    "max_num_batched_tokens": ("max_num_batched_tokens",),
    "prefix_caching": ("enable_prefix_caching",),
    "kv_cache_dtype": ("kv_cache_dtype_resolved", "kv_cache_dtype_requested"),
    "draft_method": ("spec_method",),
    "draft_tokens": ("num_speculative_tokens",),
    "draft_model": ("draft_model",),
    "gpu_memory_utilization": ("gpu_memory_utilization",),
}
"""Words of the question that a log may state, and its facts that do."""
LABELS = {
    "num_blocks": "KV cache blocks",
    "kv_tokens": "KV cache tokens",
    "max_concurrency": "Requests of full length at once",
    "block_size": "Block size, tokens",
    "kv_bytes_per_token": "Bytes per token, memory by tokens",
    "weights_gib": "Weights loaded, GiB",
}
"""What a person calls the numbers that are compared."""
READING = (
    "Predicted: what this release's allocator gives for the memory that the log prints; an interval, because the log "
    "rounds it. Consistent: the printed number lies in it. Explained: it does once the cause is taken into account."
)
"""How to read the comparison, for whoever sees it first."""
COUNTS = ("tp", "pp", "dcp", "max_model_len", "max_num_batched_tokens", "block_size", "draft_tokens")


def memory_of_log(question: Mapping[str, Any]) -> dict[str, Any]:
    """Predicted against printed for the log of one server; flags given beside it stand for what it does not say."""
    path = Path(str(question["log"]))
    server = server_facts(path)
    words, notes = words_of(question, server)
    asked = memory_question(words)
    printed = printed_of(server)
    asked = as_served(asked, server, words, notes)
    rows, request = compare(asked.layout, asked.request, printed)
    unread = unread_part(server, words)
    named = "weights" in words or str(server.get("model", "")).endswith(str(words["model"]))
    if any(row.cause == SCALES_APART for row in rows):
        printed = printed.times(VALUES_ONLY[request.kv_cache_dtype])
    found = [told(row, unread) for row in (*rows, *_formula_row(asked, request, printed))]
    found += _weights_row(asked, server) if named and "attention_tp" not in server else []
    return envelope(
        "memory",
        {**asked.echo, "log": path.name},
        sentence=sentence(found, path.name, server),
        reading=READING,
        predicted_against_printed=[_shown(row) for row in found if row.printed is not None or row.low is not None],
        rule=replay(asked.layout, request).rule,
        kv_bytes_per_token=replay(asked.layout, asked.request).bytes_per_token,
        items=measured_items(server),
        allocated_bytes=allocated_bytes(printed),
        server={key: value for key, value in server.items() if not isinstance(value, dict)},
        support=None,
        fits=None,
        notes=[*notes, *asked.notes],
    )


def server_facts(path: Path) -> Mapping[str, Any]:
    """What the log says of its server; a file that is no serving log is refused."""
    from nvdash.readers.bundle import read_file
    from nvdash.readers.record import plain_json

    reading = read_file(path)
    if reading.error is not None:
        raise reading.error
    facts: Mapping[str, Any] = plain_json(reading.server or _server_side(path, reading.format))
    return facts


def _server_side(path: Path, form: str | None) -> Mapping[str, Any]:
    """What a server printed into a file that is first of all something else, such as a benchmark's output."""
    from nvdash.readers.logs import any_log
    from nvdash.readers.source import FileRefused, open_source

    try:
        with open_source(path) as source:
            return any_log(source).server
    except FileRefused as error:
        raise UsageError(path.name, "a serving log", f"found {form} without server facts") from error


def words_of(question: Mapping[str, Any], server: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The memory question behind a log: its own facts, and the user's flags where they are given."""
    given = question_words(question)
    notes: list[str] = []
    stated = {word: _first(server, names) for word, names in TAKEN.items()}
    if server.get("framework") == "sglang":
        stated["block_size"] = server.get("block_size")
    stated = {word: value for word, value in stated.items() if value is not None}
    defaults = {"framework": "vllm", "kv_cache_dtype": "auto", "tp": 1, "pp": 1, "dcp": 1}
    own = {word: value for word, value in given.items() if value != defaults.get(word) or word not in stated}
    words = {**stated, **own}
    for word in COUNTS:
        if isinstance(words.get(word), float):
            words[word] = int(words[word])
    if "dcp" not in own and (server.get("pcp") or 1) > 1:
        words["dcp"] = int(server["pcp"]) * int(words.get("dcp", 1))
        notes.append("prefill and decode context ranks are taken together: both split the tokens of a block")
    if "release" not in own and words.get("framework", "vllm") == "vllm" and not is_release(words.get("release")):
        release = _release_by_rule(server, notes)
        words = {word: value for word, value in words.items() if word != "release"}
        words |= {"release": release} if release else {}
    return named_model(with_drafter(words, own, notes), server, notes), notes


def is_release(stated: Any) -> bool:
    """Whether a printed version is a release or follows one; a build without tags calls itself 0.1.dev…."""
    try:
        return stated is not None and version(str(stated)) >= version(RANGES[0].since)
    except UsageError:
        return False


def question_words(question: Mapping[str, Any]) -> dict[str, Any]:
    """The flags given beside the log."""
    return {key: value for key, value in question.items() if value is not None and key not in ("log", "solve")}


def _first(server: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((server[name] for name in names if server.get(name) is not None), None)


def _release_by_rule(server: Mapping[str, Any], notes: list[str]) -> str | None:
    """No version was printed: the wording of the numbers tells the engine, or the side of 0.21 that the build is on."""
    rule = server.get("kv_tokens_rule")
    first = rule is None and server.get("status") != "failed" and any(name in server for name in FIRST_ENGINE)
    release = LAST_OF_FIRST_ENGINE if first else RULE_RELEASES.get(str(rule))
    why = "by the wording of its numbers" if first or rule else "no number tells its age, so"
    known = server.get("version")
    printed = f"{known} is no release" if known else "no version was printed"
    notes.append(f"{printed}: {why} {f'the rules of {release}' if release else 'the newest rules'} are used")
    return release


def printed_of(server: Mapping[str, Any]) -> Printed:
    """The numbers that the allocator decides, as the log printed them."""
    available = server.get("available_kv_gib", server.get("kv_allocated_gib"))
    return Printed(
        available_gib=available,
        num_blocks=server.get("num_blocks"),
        kv_tokens=server.get("kv_tokens"),
        max_concurrency=server.get("max_concurrency"),
        block_size=server.get("block_size"),
        exact_bytes=server.get("available_min_bytes", server.get("kv_pool_bytes")),
        num_parts=2 if "available_kv_gib" not in server and "k_gib" in server else 1,
    )


MEASURED = {
    "gpu_total": ("gpu_total_gib", "total"),
    "weights": ("weights_gib", "fixed"),
    "activation_peak": ("peak_activation_gib", "fixed"),
    "non_torch": ("non_torch_gib", "fixed"),
    "cuda_graphs": ("cuda_graph_gib", "fixed"),
    "kv_cache": ("available_kv_gib", "grows"),
}
"""Items of the budget, and the facts of a log that measure them."""


def measured_items(server: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The budget as the log measured it, within the rounding of what it printed."""
    found = []
    for name, (fact, kind) in MEASURED.items():
        if server.get(fact) is None:
            continue
        middle, slack = int(server[fact] * GIB), int(ROUNDING_GIB * GIB)
        sizes = {"bytes": middle, "low_bytes": middle - slack, "high_bytes": middle + slack}
        found.append({"item": name, "kind": kind, **sizes, "source": "measured", "detail": "printed by this server"})
    return found


def allocated_bytes(printed: Printed) -> int | None:
    """The cache's memory as the server stated it; None where it did not."""
    if printed.exact_bytes is not None or printed.available_gib is None:
        return printed.exact_bytes
    return int(printed.available_gib * GIB)


def _formula_row(asked: MemoryQuestion, request: CacheRequest, printed: Printed) -> list[Row]:
    """Memory over printed tokens beside the plain formula; they differ for good reasons, which are named."""
    pools, tokens = printed.pools(), printed.kv_tokens
    if pools is None or not tokens:
        return []
    shape = replay(asked.layout, request)
    formula = shape.bytes_per_token
    low, high = (pool * request.dcp / tokens for pool in pools)
    differs = not formula or not low <= formula * (1 + TOLERANCE) or not formula * (1 - TOLERANCE) <= high
    cause = formula_cause(shape) if differs else ""
    return [Row("kv_bytes_per_token", formula, formula, round((low + high) / 2, 1), not differs, cause)]


def _weights_row(asked: MemoryQuestion, server: Mapping[str, Any]) -> list[Row]:
    """The estimate of the weights beside what the log says was loaded."""
    loaded = server.get("weights_gib")
    if loaded is None or asked.weights is None:
        return []
    from nvdash.footprint.budget import weights_item
    from nvdash.readers.budget_rules import budget_rules

    item = weights_item(asked.weights, budget_rules())
    low, high = item.low_bytes / GIB - ROUNDING_GIB, item.high_bytes / GIB + ROUNDING_GIB
    agrees = low <= loaded <= high
    cause = "" if agrees else "possible: the engine pads or repacks, other layers stay wide, or another tower is loaded"
    return [Row("weights_gib", round(low, 3), round(high, 3), loaded, agrees, cause)]


def sentence(rows: list[Row], name: str, server: Mapping[str, Any]) -> str:
    """Whether the server started, and how far its log and the allocator agree."""
    return f"{_failed(server)}{_agreement(rows, name)}"


def _failed(server: Mapping[str, Any]) -> str:
    if server.get("status") != "failed":
        return ""
    left = server.get("available_kv_gib")
    room = "" if left is None else f" ({left:.2f} GiB for the cache)".replace("-", "−")
    return f"This server did not start: {server.get('failure') or 'the log does not say why'}{room}. "


def _agreement(rows: list[Row], name: str) -> str:
    decided = [row for row in rows if row.consistent is not None]
    off = [row for row in decided if not row.consistent]
    bare = [LABELS[row.number] for row in off if not row.cause]
    agree = f"{len(decided) - len(off)} of {len(decided)} numbers of {name} agree"
    if not decided:
        return f"{name} prints no number that the allocator decides."
    if bare:
        return f"Not explained: {', '.join(bare)}; {agree}."
    differs = "".join(f" {LABELS[row.number]} differs: {row.cause}." for row in off)
    causes = dict.fromkeys(row.cause for row in decided if row.cause and row.consistent)
    if causes:
        return f"The printed numbers of {name} agree only with this explanation: {'; '.join(causes)}.{differs}"
    return (
        f"{agree}.{differs}"
        if off
        else f"Consistent: every printed number of {name} lies inside its predicted interval."
    )


def _shown(row: Row) -> dict[str, Any]:
    predicted = None if row.low is None else [row.low, row.high]
    return {
        "number": row.number,
        "label": LABELS[row.number],
        "predicted": predicted,
        "printed": row.printed,
        "consistent": row.consistent,
        "result": _result(row),
        "cause": row.cause or None,
    }


def _result(row: Row) -> str:
    """How the printed number stands to the prediction, in a word or two."""
    if row.printed is None:
        return "not printed"
    if row.consistent is None:
        return "not predicted"
    return "differs" if not row.consistent else "explained" if row.cause else "consistent"
