"""How a memory answer reads in a terminal: the sentence first, then weights, then cache, then advice."""

from collections.abc import Iterable, Mapping
from typing import Any

GIB = 2**30
ITEM_WORDS = {
    "gpu_total": "GPU memory",
    "utilisation": "GPU memory utilisation",
    "weights": "Weights",
    "activation_peak": "Activation peak",
    "non_torch": "Outside torch",
    "cuda_graphs": "CUDA graphs",
    "kv_cache": "KV cache",
}


def memory_lines(answer: Mapping[str, Any]) -> Iterable[Any]:
    """The lines of one memory answer."""
    yield sentence(answer)
    yield ""
    yield weights_line(answer)
    yield from cache_lines(answer)
    yield ""
    yield from item_table(answer["items"])
    yield from ("→ " + line for line in answer["advice"])
    if answer["solve"]:
        yield solve_line(answer["solve"])
    if answer["decode_bound"]:
        yield bound_line(answer["decode_bound"])
    yield from ("note: " + note for note in answer["notes"])
    yield f"rule: {answer['rule']}; matrix {answer['matrix_digest']}"


def sentence(answer: Mapping[str, Any]) -> str:
    """Does it fit and does it run, in one sentence."""
    support, pool = answer["support"], answer["binding_pool"]
    verdict = support["verdict"] if support else None
    if pool == "weights":
        return f"It does not fit: {answer['binding_reason']}.{_refused(answer, verdict)}"
    if answer["fits"] is False:
        return f"It does not fit: {_why_not(answer)}."
    if answer["fits"] is None:
        return f"Whether it fits is unknown: {_why_open(answer)}."
    if verdict in ("refused", "trap"):
        return f"It fits, but it will not run as asked.{_refused(answer, verdict)}"
    runs = {"validated": "It fits and it runs.", "expected": "It fits and should run. No run in this store yet."}
    if verdict == "conditional":
        first = next(iter(support["unmet_conditions"] or ()), None) or support.get("reason") or "see check"
        return f"It fits and should run, with conditions: {first}."
    return runs.get(verdict or "", "It fits. Whether it runs is unknown.")


def _why_not(answer: Mapping[str, Any]) -> str:
    """The load that is too large, or the start-up check that refuses although the load fits."""
    check = answer["precheck"]
    return str(check["reason"] if check and answer["binding_pool"] != "cache" else answer["binding_reason"])


def _why_open(answer: Mapping[str, Any]) -> str:
    """What lies inside the range: the load, or only the release's own start-up check."""
    check = answer["precheck"]
    if check and answer["available_kv_bytes_low"] > 0:
        return f"at the low end of the range this release refuses to start: {check['reason']}"
    return str(answer["binding_reason"])


def _refused(answer: Mapping[str, Any], verdict: str | None) -> str:
    if verdict not in ("refused", "trap"):
        return ""
    word = "refuses it" if verdict == "refused" else "accepts it, then fails"
    reason = answer["support"].get("reason")
    return f" {answer['question']['release']} {word}{f': {reason}' if reason else ''}."


def weights_line(answer: Mapping[str, Any]) -> str:
    """What is fixed."""
    if answer["weights_bytes"] is None:
        return "Weights, fixed: unknown"
    whole = answer["weights"]
    span = _span(whole["bytes_low"], answer["weights_bytes"], whole["bytes_high"])
    bound = whole["lower_bound_4_5_bits_bytes"] / GIB
    words = f"whole model at 4.5 bits per parameter: {bound:.2f} GiB, a lower bound"
    return f"Weights, fixed: {span} per GPU ({answer['weights_source']}; {words})"


def cache_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """What grows: bytes per token with the formula, the pool, the tokens it holds."""
    per_token = answer["kv_bytes_per_token"]
    yield f"KV cache, grows: {per_token:,} B = {per_token / 1024:.1f} KiB per token ({answer['formula']})"
    low, high = answer["available_kv_bytes_low"], answer["available_kv_bytes_high"]
    if low is None:
        yield "KV cache pool: unknown"
        return
    yield f"KV cache pool: {_span(low, answer['available_kv_bytes'], high)} per GPU"
    if answer["kv_tokens_low"] is not None:
        words = "as this release prints them" if answer["kv_tokens_rule"] else ""
        yield f"KV cache tokens: {_counts(answer['kv_tokens_low'], answer['kv_tokens_high'])} {words}".rstrip()
    if answer["max_concurrency_low"] is not None:
        low_count, high_count = answer["max_concurrency_low"], answer["max_concurrency_high"]
        length = answer["question"]["max_model_len"]
        count = f"{low_count:.2f}" if low_count == high_count else f"{low_count:.2f} to {high_count:.2f}"
        yield f"Requests of {length:,} tokens at once: {count}"


def item_table(items: Iterable[Mapping[str, Any]]) -> Iterable[Any]:
    """Where the bytes go, line by line, each with its source."""
    rows = list(items)
    if not rows:
        return
    from rich.table import Table

    table = Table("Item", "Kind", "Size", "Source", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        size = _span(row["low_bytes"], row["bytes"], row["high_bytes"])
        source = f"{row['source']}: {row['detail']}" if row["detail"] else row["source"]
        table.add_row(ITEM_WORDS.get(row["item"], row["item"]), row["kind"], size, source)
    yield table
    yield ""


def solve_line(solved: Mapping[str, Any]) -> str:
    """The solution in one line."""
    if solved["for"] == "context":
        found = _counts(solved["context_low"], solved["context_high"])
        return f"Longest context for {solved['concurrency']} at once: {found} tokens"
    if solved["for"] == "concurrency":
        found = _counts(solved["concurrency_low"], solved["concurrency_high"])
        return f"Requests of {_counts(solved['context'], solved['context'])} tokens at once: {found}"
    if solved["for"] == "gpus":
        undecided = ", ".join(map(str, solved["undecided"]))
        left_open = f" ({undecided} undecided)" if undecided else ""
        return f"Fewest GPUs (tensor parallel): {solved['gpus'] or 'none of ' + str(solved['tried'])}{left_open}"
    tried = ", ".join(f"{row['kv_cache_dtype']} {_yes(row['fits'])}" for row in solved["formats"])
    none = "unknown" if any(row["fits"] is None for row in solved["formats"]) else "none"
    return f"Widest cache format that fits: {solved['kv_cache_dtype'] or none} ({tried})"


def bound_line(bound: Mapping[str, Any]) -> str:
    """The roofline, labelled a bound."""
    read = bound["weights_bytes"] / GIB, bound["cache_bytes"] / GIB
    return (
        f"Decode step: at least {bound['step_ms_at_least']:.2f} ms, a bound: {read[0]:.2f} GiB of weights and "
        f"{read[1]:.2f} GiB of cache read once at {bound['bandwidth_gbs']:,.0f} GB/s"
    )


def log_lines(answer: Mapping[str, Any]) -> Iterable[Any]:
    """Predicted against printed, line by line, and the cause of each difference."""
    yield answer["sentence"]
    from rich.table import Table

    columns = ("Number", "Predicted", "Printed", "Result", "Cause")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in answer["predicted_against_printed"]:
        cells = (row["label"], _printed(row["predicted"]), _printed(row["printed"]), row["result"])
        table.add_row(*cells, row["cause"] or "")
    yield table
    yield answer["reading"]
    yield ""
    yield from item_table(answer["items"])
    yield from ("note: " + note for note in answer["notes"])


def _printed(value: Any) -> str:
    return "—" if value is None else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(dict.fromkeys(map(_shown, value)))
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else "unknown" if value is None else str(value)


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "unknown"}[value]


def _span(low: int, middle: int, high: int) -> str:
    """Bytes in GiB, with the range when there is one; a real minus sign."""
    shown = [f"{size / GIB:,.2f}".replace("-", "−") for size in (low, middle, high)]
    return f"{shown[1]} GiB" if low == high else f"{shown[1]} GiB ({shown[0]} to {shown[2]})"


def _counts(low: int | None, high: int | None) -> str:
    if low is None or high is None:
        return "unknown"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
