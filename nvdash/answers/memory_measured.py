"""Which printed memory of stored runs holds for a question: same release line, model, GPU, TP and what else decides it.

A row that does not state what an item depends on is not used for it. Rows of the same set-up give an interval.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nvdash.answers.memory_question import MemoryQuestion
from nvdash.footprint.budget import Measured, Setting, fraction_of
from nvdash.footprint.from_log import ROUNDING_GIB
from nvdash.targets import GIB

Row = Mapping[str, Any]
PROFILED = ("activation_peak", "cuda_graphs", "kv_cache")
"""Items that grow with the tokens of one engine step."""
OF_THE_FORMAT = ("weights", "kv_cache")
"""Items that another weight format changes."""
OF_THE_GRAPHS = ("cuda_graphs", "kv_cache")
FIRST_ENGINE_UNTIL = [0, 8]
NO_GRAPHS = ("none", "eager", "off", "0")


def measured_of(asked: MemoryQuestion, setting: Setting, rules: Mapping[str, Any]) -> tuple[Measured, ...]:
    """The items of the budget that stored runs of this set-up printed; nothing for a part of a model."""
    from nvdash.store.measured import ITEMS, measured

    line = release_line(setting.release)
    if line is None or asked.gpu is None or asked.request.pp != 1 or asked.echo.get("layers"):
        return ()
    setup = {"framework": setting.framework, "line": line, "model_base": asked.model.base}
    rows = measured({**setup, "gpu": asked.gpu.id, "tp": setting.tp})
    low, high = fraction_of(setting, rules)[0]
    fraction = low if low == high else None
    found = {item: [row for row in rows if row["item"] == item and holds(row, asked, fraction)] for item in ITEMS}
    return tuple(interval(item, chosen) for item, chosen in found.items() if chosen)


def release_line(release: str | None) -> str | None:
    """The first two numbers of a release; None for a name without them."""
    parts = (release or "").removeprefix("v").split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and all(part.isdecimal() for part in parts[:2]) else None


def holds(row: Row, asked: MemoryQuestion, fraction: float | None) -> bool:
    """Whether a row's own settings are those of the question, as far as its item depends on them."""
    item, tokens = row["item"], asked.request.max_num_batched_tokens
    drafter = asked.request.draft.method if asked.request.draft else None
    return (
        row.get("spec_method") == drafter
        and (item not in OF_THE_FORMAT or row.get("weight_format") == asked.weights_word)
        and (item not in PROFILED or tokens is None or row.get("max_num_batched_tokens") == tokens)
        and (item not in PROFILED or not profiles_a_prompt(asked) or row.get("max_model_len") == asked.length)
        and (item not in OF_THE_GRAPHS or str(row.get("cuda_graphs") or "").lower() not in NO_GRAPHS)
        and (item != "kv_cache" or (fraction is not None and row.get("fraction") == fraction))
    )


def profiles_a_prompt(asked: MemoryQuestion) -> bool:
    """Whether the engine profiles one prompt of the longest length, as vLLM's first engine did."""
    line = release_line(asked.request.release) or ""
    return asked.request.framework == "vllm" and [int(part) for part in line.split(".")] < FIRST_ENGINE_UNTIL


def interval(item: str, rows: Sequence[Row]) -> Measured:
    """What these rows printed, within the rounding of print; the detail names a run and its step size."""
    low = min(row["low_gib"] for row in rows) - ROUNDING_GIB
    high = max(row["high_gib"] for row in rows) + ROUNDING_GIB
    return Measured(item, int(low * GIB), int(high * GIB), detail_of(item, rows))


def detail_of(item: str, rows: Sequence[Row]) -> str:
    """The runs behind an item, and the tokens of one step that it was measured with where that decides it."""
    number = sum(row["num_runs"] for row in rows)
    named = f"printed by run {rows[0]['run_id'][:8]}" + (f" and {number - 1} more" if number > 1 else "")
    steps = sorted({row["max_num_batched_tokens"] for row in rows if row.get("max_num_batched_tokens")})
    if item not in PROFILED or not steps:
        return named
    return f"{named}, {' and '.join(f'{step:,}' for step in steps)} batched tokens"
