"""One statement of the support matrix: what holds, when, since which release, and who says so.

`matrix/README.md` describes the keys, `statement_rows` checks them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

STAGES = ("weights", "kv_write", "prefill", "decode")
ATTENTION_STAGES = STAGES[1:]
VERDICTS = ("refused", "trap", "unknown", "conditional", "expected", "validated")
"""Worst first."""
LAYERS = ("config", "selector", "constructor", "forward", "kernel", "silent")
KERNELS = ("native", "dequant", "emulated", "unknown")
LEVELS = ("traced", "served", "source", "document", "report", "none")
PARTS = ("linear", "experts")

TEXT_AXES = (
    *("backend", "prefill_backend", "decode_backend", "arch", "kv_cache_dtype", "weights", "method"),
    *("kind", "graphs", "checkpoint_kv", "model_base", "model_class", "model_dtype"),
)
SIZE_AXES = ("dcp_divides_tp", "tp_above_kv_heads", "dcp_fits_kv_heads", "dcp_divides_head_group")
TRUTH_AXES = ("mla", "sparse", "equal_head_sizes", "sinks", "causal", "drafter", *SIZE_AXES)
NUMBER_AXES = ("query_heads", "kv_heads", "head_size", "value_head_size", "window", "dcp", "page_size")
AXES = (*TEXT_AXES, *TRUTH_AXES, *NUMBER_AXES)
AxisValue = str | int | bool


@dataclass(frozen=True, slots=True)
class Condition:
    """A limit on one axis."""

    axis: str
    any_of: frozenset[AxisValue] | None = None
    none_of: frozenset[AxisValue] = frozenset()
    low: int | None = None
    high: int | None = None
    multiple_of: int | None = None

    def admits(self, value: Any) -> bool:
        """Whether a known value of the axis lies within the limit."""
        if self.any_of is not None and value not in self.any_of:
            return False
        if value in self.none_of:
            return False
        too_low = self.low is not None and value < self.low
        too_high = self.high is not None and value > self.high
        return not (too_low or too_high or (self.multiple_of is not None and value % self.multiple_of))

    def __str__(self) -> str:
        words = []
        if self.any_of is not None:
            words.append(" or ".join(sorted(map(_word, self.any_of))))
        if self.none_of:
            words.append("not " + " or ".join(sorted(map(_word, self.none_of))))
        words += [f"at least {self.low}"] if self.low is not None else []
        words += [f"at most {self.high}"] if self.high is not None else []
        words += [f"a multiple of {self.multiple_of}"] if self.multiple_of else []
        return f"{self.axis} {', '.join(words)}"


EVALUATED_ARCHS = ("sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")
EVALUATED = Condition("arch", frozenset(EVALUATED_ARCHS))
"""The GPUs a release's source is evaluated for: a generated statement that names none holds for these, not for others.

What a configuration refuses before any GPU is looked at holds everywhere.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One fact over a run of releases; each is itself only."""

    id: str
    framework: str
    kind: str
    when: tuple[Condition, ...]
    since: str
    where: str
    """File and line."""
    until: str | None = None
    stage: tuple[str, ...] = ATTENTION_STAGES
    verdict: str | None = None
    layer: str | None = None
    reason: str | None = None
    kernel: str | None = None
    compute: Mapping[str, str] | None = None
    path: str | None = None
    part: str | None = None
    kv_format: str | None = None
    requires_flashinfer: str | bool | None = None
    order: tuple[str, ...] = ()
    axis: str = "kv_cache_dtype"
    becomes: str | None = None
    silent: bool = False
    name: str | None = None
    value: Any = None
    evidence: Mapping[str, Any] | None = None
    evidence_level: str = "source"
    assumes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    reports: tuple[Mapping[str, Any], ...] = ()
    issues: tuple[str, ...] = ()
    warning: str | None = None
    decides: str | None = None
    """The generated statement, undecided, in whose place this one stands."""
    why: str | None = None
    source: str | None = None
    generated: bool = False
    limits: Mapping[str, Condition] = field(default_factory=dict, compare=False, repr=False)
    """`when` by axis."""

    def citation(self) -> dict[str, Any] | None:
        """Where it is written, with its level; None when it has no evidence."""
        if not self.evidence:
            return None
        cited = {key: value for key, value in self.evidence.items() if key != "lines"}
        return {"framework": self.framework, **cited, "level": self.evidence_level}


def statement_of(row: Mapping[str, Any], framework: str) -> Statement:
    """The value of a checked row (as `compiled` stored it, with `where` and `generated`)."""
    kind = row.get("kind", "support")
    values = {key: _frozen(value) for key, value in row.items() if key in _FIELDS}
    when = tuple(condition_of(axis, limit) for axis, limit in row["when"].items())
    if row.get("generated") and "arch" not in row["when"] and kind in ("support", "quant"):
        when += () if row.get("layer") == "config" else (EVALUATED,)
    stage = ("weights",) if kind == "quant" else tuple(listed(row.get("stage", ATTENTION_STAGES)))
    limits = {condition.axis: condition for condition in when}
    values |= {"kind": kind, "framework": framework, "when": when, "stage": stage, "limits": limits}
    return Statement(**values)


def condition_of(axis: str, limit: Any) -> Condition:
    """One entry of `when`."""
    if not isinstance(limit, Mapping):
        return Condition(axis, frozenset(listed(limit)))
    none_of = frozenset(listed(limit["not"])) if "not" in limit else frozenset()
    return Condition(axis, None, none_of, limit.get("min"), limit.get("max"), limit.get("multiple_of"))


_FIELDS = {item.name for item in fields(Statement)}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _word(value: AxisValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
