"""What one GPU leaves for the cache: its total times the engine's fraction, less everything that is fixed.

Each item is a range with its source. A single number is the typical case; token counts are trusted only at both ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvdash.errors import UsageError
from nvdash.footprint.vllm_rules import version
from nvdash.footprint.weights import Weights
from nvdash.targets import GIB, Gpu

SOURCES = ("measured", "estimated", "default", "checkpoint", "catalogue", "user")


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the budget: bytes per rank, a range, and who says so."""

    name: str
    typical_bytes: int
    low_bytes: int
    high_bytes: int
    source: str
    """One of `SOURCES`."""
    detail: str = ""
    kind: str = "fixed"
    """fixed, grows, or total for what everything is taken from."""

    def as_dict(self) -> dict[str, Any]:
        """The item as an answer shows it."""
        return {
            "item": self.name,
            "kind": self.kind,
            "bytes": self.typical_bytes,
            "low_bytes": self.low_bytes,
            "high_bytes": self.high_bytes,
            "source": self.source,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """What servers of the same release line, model, GPU and set-up printed of one item, as an interval."""

    item: str
    """An item of the budget; `kv_cache` is the pool itself."""
    low_bytes: int
    high_bytes: int
    detail: str
    """Which runs, and what they were served with."""

    def as_item(self) -> Item:
        """The item with nothing but what was printed."""
        middle = (self.low_bytes + self.high_bytes) // 2
        return Item(self.item, middle, self.low_bytes, self.high_bytes, "measured", self.detail)


@dataclass(frozen=True, slots=True)
class Setting:
    """What of the question decides the budget."""

    framework: str
    release: str | None
    tp: int = 1
    utilisation: float | None = None
    experts: bool = False
    vision: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """The cache's share of every pipeline stage: typical, and at either end of the range."""

    items: tuple[Item, ...]
    typical: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    of: str
    """What the engine's fraction multiplies: total, free or static."""
    source: str = "estimated"
    """Whether the pool is what is left of the items, or was itself printed by a server."""
    detail: str = "what is left"

    @property
    def exact(self) -> bool:
        """Whether both ends are one number."""
        return self.low == self.high


def budget(
    gpu: Gpu, weights: Weights, setting: Setting, rules: Mapping[str, Any], measured: Sequence[Measured] = ()
) -> Budget | None:
    """The budget of one rank per pipeline stage, measured items in the place of estimates; None without a total."""
    if gpu.memory_low_bytes is None or gpu.memory_high_bytes is None:
        return None
    low_total, high_total = gpu.memory_low_bytes, gpu.memory_high_bytes
    middle = (low_total + high_total) // 2
    total = Item("gpu_total", middle, low_total, high_total, _origin(gpu), gpu.memory_source, "total")
    fraction, of, words = fraction_of(setting, rules)
    printed = {found.item: found.as_item() for found in measured}
    weighed = weights_item(weights, rules)
    weighed = printed.get("weights", weighed) if weights.source != "checkpoint" else weighed
    fixed = [printed.get(row["item"]) or _item(row) for row in _rows(setting, rules)]
    inside = [item for item in fixed if of != "static" or item.name == "non_torch"]
    shifts = [stage - weights.rank_bytes for stage in weights.by_stage] or [0]
    spans = [_pool(total, fraction, of, weighed, inside, shift) for shift in shifts]
    low, typical, high = (tuple(span[end] for span in spans) for end in range(3))
    share = (min(typical), min(low), min(high)) if of == "free" else _share(total, fraction)
    asked = Item("utilisation", *share, "default" if setting.utilisation is None else "user", words, "total")
    items = (total, asked, weighed, *fixed)
    pool = printed.get("kv_cache")
    if pool is None:
        return Budget(items, typical, low, high, of)
    ends = ((pool.typical_bytes,), (pool.low_bytes,), (pool.high_bytes,))
    return Budget(items, *ends, of, pool.source, pool.detail)


def _share(total: Item, fraction: tuple[float, float]) -> tuple[int, int, int]:
    """What the engine takes of the total: typical, low and high."""
    low, high = fraction
    middle = (low + high) / 2
    return int(total.typical_bytes * middle), int(total.low_bytes * low), int(total.high_bytes * high)


def _origin(gpu: Gpu) -> str:
    return "user" if gpu.memory_source == "user" else "catalogue"


def fraction_of(setting: Setting, rules: Mapping[str, Any]) -> tuple[tuple[float, float], str, str]:
    """The engine's fraction as a range, what it multiplies, and both in words with the source."""
    row = _last(rules["fractions"], setting)
    default = row["default"]
    low, high = default if isinstance(default, list) else (default, default)
    if setting.utilisation is not None:
        low = high = setting.utilisation
    words = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return (float(low), float(high)), str(row["of"]), f"{words} of {row['of']} memory; {row['source']}"


def weights_item(weights: Weights, rules: Mapping[str, Any]) -> Item:
    """The weights with the range of the estimate; listed tensors have none."""
    if weights.source == "checkpoint":
        size = weights.rank_bytes
        return Item("weights", size, size, size, "checkpoint", "tensors listed from headers")
    below, above = rules["weights"]["error_pct"]["narrow" if weights.narrow else "wide"]
    low, high = int(weights.low_bytes * (1 + below / 100)), int(weights.high_bytes * (1 + above / 100))
    detail = f"{below:+g} to {above:+g} % seen over {rules['weights']['checkpoints']} known checkpoints"
    return Item("weights", weights.rank_bytes, low, high, "estimated", "; ".join(filter(None, [weights.note, detail])))


def _pool(
    total: Item, fraction: tuple[float, float], of: str, weights: Item, inside: Sequence[Item], shift: int
) -> tuple[int, int, int]:
    """Low, typical and high bytes for the cache of one stage, whose weights are `shift` off the fullest one's."""
    low_fraction, high_fraction = fraction
    middle = (low_fraction + high_fraction) / 2
    least = weights.high_bytes + shift + sum(item.high_bytes for item in inside)
    usual = weights.typical_bytes + shift + sum(item.typical_bytes for item in inside)
    most = weights.low_bytes + shift + sum(item.low_bytes for item in inside)
    return (
        _left(total.low_bytes, low_fraction, of, least),
        _left(total.typical_bytes, middle, of, usual),
        _left(total.high_bytes, high_fraction, of, most),
    )


def _left(total: int, fraction: float, of: str, fixed: int) -> int:
    """A fraction of the total less what is fixed, or a fraction of what is then free."""
    return int((total - fixed) * fraction) if of == "free" else int(total * fraction) - fixed


def _rows(setting: Setting, rules: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The measured rows that hold, the last one of each item."""
    chosen = {row["item"]: row for row in rules["items"] if _holds({**row, **row.get("when", {})}, setting)}
    return list(chosen.values())


def _last(rows: Sequence[Mapping[str, Any]], setting: Setting) -> Mapping[str, Any]:
    return [row for row in rows if _holds(row, setting)][-1]


def _holds(row: Mapping[str, Any], setting: Setting) -> bool:
    """Whether a row is meant for this set-up."""
    release = _version(setting.release)
    return (
        row.get("framework", setting.framework) == setting.framework
        and row.get("experts", setting.experts) == setting.experts
        and row.get("vision", setting.vision) == setting.vision
        and row.get("tp_at_least", 1) <= setting.tp
        and (release is None or "since" not in row or release >= version(row["since"]))
        and (release is None or "until" not in row or release < version(row["until"]))
    )


def _version(release: str | None) -> tuple[int, ...] | None:
    """The numbers of a release; None, and so the newest rules, for a name without any."""
    try:
        return version(release) if release else None
    except UsageError:
        return None


def _item(row: Mapping[str, Any]) -> Item:
    typical, low, high = (int(row[key] * GIB) for key in ("typical", "low", "high"))
    return Item(row["item"], typical, low, high, "estimated", row["source"])
