"""Describes the head sizes a backend accepts as a condition: any, a list, a range, multiples."""

from typing import Any

from nvdash.extract.context import Cell
from nvdash.extract.selector import Selector
from nvdash.extract.sweep import Backend

WIDE = (
    8,
    16,
    24,
    32,
    36,
    40,
    42,
    48,
    56,
    64,
    72,
    80,
    81,
    88,
    96,
    100,
    104,
    112,
    120,
    128,
    136,
    144,
    160,
    176,
    192,
    208,
    224,
    240,
    256,
    264,
    288,
    320,
    384,
    448,
    512,
    520,
    576,
    640,
    768,
    1024,
)
MAX_LIST = 12


def accepted_sizes(selector: Selector, backend: Backend, arch: int) -> frozenset[int] | None:
    """The sizes out of WIDE that `supports_head_size` accepts on an architecture; None when one is undecided."""
    run = selector.interpreter(Cell(arch, "auto", 128, backend.mla, backend.sparse))
    method = run.scope.class_attribute(backend.cls, "supports_head_size", backend.cls, 0)
    accepted = set()
    for size in WIDE:
        verdicts = {repr(path.value) for path in run.paths(method, {"head_size": size})}
        if verdicts == {"True"}:
            accepted.add(size)
        elif verdicts != {"False"}:
            return None
    return frozenset(accepted)


def accepting(accepted: frozenset[int]) -> Any:
    """The condition that admits exactly these sizes out of WIDE; None admits all."""
    if len(accepted) == len(WIDE):
        return None
    if len(accepted) <= MAX_LIST:
        return sorted(accepted)
    low, high = min(accepted), max(accepted)
    for step in (32, 16, 8, 4, 1):
        if accepted == {size for size in WIDE if low <= size <= high and size % step == 0}:
            limits = {
                "min": low if low > step and low > WIDE[0] else None,
                "max": high if high < WIDE[-1] else None,
                "multiple_of": step if step > 1 else None,
            }
            return {key: value for key, value in limits.items() if value is not None}
    return sorted(accepted)


def refusing(accepted: frozenset[int]) -> list[Any]:
    """Conditions that together admit the sizes a backend refuses; none when it takes every size."""
    condition = accepting(accepted)
    if condition is None:
        return []
    if isinstance(condition, list):
        return [{"not": condition}]
    limits = []
    if "min" in condition:
        limits.append({"max": condition["min"] - 1})
    if "max" in condition:
        limits.append({"min": condition["max"] + 1})
    return limits
