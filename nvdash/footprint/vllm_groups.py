"""How vLLM puts layers into groups that share a block table, by release."""

from dataclasses import dataclass, replace

from nvdash.errors import UnknownError
from nvdash.footprint.caches import Cache
from nvdash.footprint.vllm_pages import Spec
from nvdash.footprint.vllm_rules import VllmRules


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers on one block table; `size` counts its padding layers too."""

    members: tuple[tuple[Cache, Spec], ...]
    size: int
    mixed: bool = False
    """Layers of different widths in one group; its block holds a page of each."""

    @property
    def spec(self) -> Spec:
        """The first layer's spec, which stands for the group."""
        return self.members[0][1]

    @property
    def bytes_per_block(self) -> int:
        """One block holds a page of every layer of the group."""
        return sum(spec.page for _, spec in self.members)

    def on(self, caches: frozenset[Cache]) -> "LayerGroup":
        """The part of the group that one rank holds."""
        members = tuple(member for member in self.members if member[0] in caches)
        return replace(self, members=members, size=len(members))


def group_layers(layers: dict[Cache, Spec], rules: VllmRules) -> tuple[LayerGroup, ...]:
    """The groups of these layers under the rules of one range of releases."""
    members = tuple(layers.items())
    if not members:
        return ()
    if rules.flat or len(set(layers.values())) == 1:
        return (LayerGroup(members, len(members), mixed=len(set(layers.values())) > 1),)
    if rules.uniform_types and _one_type(tuple(layers.values())):
        return (LayerGroup(members, len(members), mixed=True),)
    return _buckets(_unified(layers, rules), rules)


def _one_type(found: tuple[Spec, ...]) -> bool:
    """Whether all layers need the same number of slots: all full, or one window, or one kind of state."""
    first = found[0]
    if len({spec.block for spec in found}) > 1:
        return False
    if first.full_type:
        return all(spec.full_type for spec in found)
    return all((spec.kind, spec.window) == (first.kind, first.window) for spec in found)


def _unified(layers: dict[Cache, Spec], rules: VllmRules) -> dict[Cache, Spec]:
    """All pages raised to the largest: by a larger block where it divides, else by padding where allowed."""
    largest = max(spec.page for spec in layers.values())
    return {cache: _raised(spec, largest, rules) for cache, spec in layers.items()}


def _raised(spec: Spec, largest: int, rules: VllmRules) -> Spec:
    if spec.page == largest:
        return spec
    if spec.kind == "state" and rules.unify == "pad_state":
        return spec.with_page(largest)
    if rules.unify != "none" and largest % spec.page == 0:
        return spec.with_block(spec.block * (largest // spec.page))
    latent = spec.kind in ("mla", "index", "state")
    if rules.unify in ("pad", "pad_state") and not latent:
        return spec.with_page(largest)
    raise UnknownError(
        "release",
        "a release that can unify these cache pages",
        f"found pages of {spec.page} and {largest} bytes, which vLLM {rules.since} refuses to start with",
        "unequal pages are unified by block ratio from 0.12 and padded from 0.24 (attention) or 0.26 (states)",
    )


def _buckets(layers: dict[Cache, Spec], rules: VllmRules) -> tuple[LayerGroup, ...]:
    """Equal layers in buckets, every bucket split into groups of one size."""
    buckets: dict[Spec, list[tuple[Cache, Spec]]] = {}
    for cache, spec in layers.items():
        buckets.setdefault(spec, []).append((cache, spec))
    counts = [len(bucket) for bucket in buckets.values()]
    size = min(counts)
    if max(counts) * 100 < size * rules.group_percent:
        size = max(counts)
    return tuple(group for bucket in buckets.values() for group in _split(bucket, size))


def _split(bucket: list[tuple[Cache, Spec]], size: int) -> list[LayerGroup]:
    number = -(-len(bucket) // size)
    return [LayerGroup(tuple(bucket[start::number]), size) for start in range(number)]
