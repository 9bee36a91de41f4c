"""What a model's weights take: per component, per rank, in a weight format.

Exact where tensors were listed (`readers.checkpoint`), otherwise estimated from the parts that the config implies and
from what the checkpoint leaves wide. Where that list is not known the estimate is a range.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from nvdash.errors import UnknownError, did_you_mean
from nvdash.footprint.caches import Layout
from nvdash.footprint.layers import layout
from nvdash.footprint.parameters import Part, count_parts, total_values
from nvdash.footprint.ranks import MTP_METHODS, pipeline
from nvdash.footprint.request import CacheRequest
from nvdash.formats import WEIGHT_ENCODINGS, Encoding
from nvdash.targets import Checkpoint

LINEARS = frozenset({"attention", "state", "mlp", "experts"})
NARROWED = {
    "nvfp4": (LINEARS, frozenset({"experts"})),
    "mxfp4": (frozenset({"experts", "mlp"}), frozenset({"experts"})),
    "awq": (LINEARS, frozenset({"experts", "mlp"})),
    "gptq": (LINEARS, frozenset({"experts", "mlp"})),
    "int4": (LINEARS, frozenset({"experts", "mlp"})),
}
"""Components a format narrows at most and at least in models with experts or states, where checkpoints differ.

Dense models, and every other format, have all linear layers of the decoder narrowed.
"""
PACKED_INTEGERS = {"awq": 4, "gptq": 4, "int4": 4}
"""Integer formats with a 16-bit scale and a zero of the weight's own bits per group."""
DEFAULT_GROUP = 128
NEVER = r"(?!)"
NESTED = re.compile(r"\)[*+?{]|\(\?|\{")
MAX_REPEATS = 4
"""Patterns come from a config, so they may be hostile: no repeated groups, few repeats."""
SIZED = frozenset({*WEIGHT_ENCODINGS, *PACKED_INTEGERS})
"""Every weight format whose bytes are known."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of the weights on the fullest rank, with the range the source allows."""

    rank_bytes: int
    low_bytes: int
    high_bytes: int
    total_bytes: int
    """Over all parts once, before any rank holds a copy."""
    source: str
    """`checkpoint` (tensors were listed) or `estimated`."""
    parameters: int
    by_component: Mapping[str, int]
    """Bytes on the fullest rank."""
    by_stage: tuple[int, ...] = ()
    note: str = ""
    wide_layers_known: bool = False
    narrow: bool = False
    """Whether any layer is stored in less than 16 bits."""

    @property
    def lower_bound_bytes(self) -> int:
        """4.5 bits for every parameter: what NVFP4 would take if nothing stayed wide."""
        return self.parameters * 9 // 16


def encoding_of(weights: str, group_size: int | None) -> Encoding:
    """How one weight is stored in a format; integer formats follow the checkpoint's group size."""
    bits = PACKED_INTEGERS.get(weights)
    if bits is None:
        if weights not in SIZED:
            hint, where = did_you_mean(weights, sorted(SIZED)), f"weights {weights!r}"
            raise UnknownError(where, "a format of known size", "its bytes were not derived", hint)
        return WEIGHT_ENCODINGS[weights]
    group = group_size or DEFAULT_GROUP
    return Encoding(bits, block=2 * group, block_bytes=2 * 2 + 2 * bits // 8)


def estimate(
    config: Mapping[str, Any],
    weights: str,
    checkpoint: Checkpoint | None = None,
    request: CacheRequest | None = None,
    layers: Layout | None = None,
) -> Weights:
    """Weights on the fullest rank, counted from the config and the checkpoint row; `layers` saves a second reading."""
    request, layers = request or CacheRequest(), layers or layout(config)
    parts = count_parts(config, own_drafter(request), layers)
    stages = stages_of(layers, request)
    narrow = encoding_of(weights, checkpoint.group_size if checkpoint else None)
    known = bool(checkpoint and checkpoint.wide_layers)
    cases = [
        [(part, part_bytes(part, choice, narrow)) for part in parts] for choice in _choices(parts, weights, checkpoint)
    ]
    fullest = [max(rank_bytes(case, stage, request.tp) for stage in stages) for case in cases]
    weighed = weights_of(cases[0], stages, request.tp, "estimated", _note(fullest, known))
    return replace(
        weighed,
        low_bytes=min(fullest),
        high_bytes=max(fullest),
        wide_layers_known=known,
        narrow=WEIGHT_ENCODINGS.get(weights, Encoding(4)).bits < 16,
    )


def own_drafter(request: CacheRequest) -> bool:
    """Whether the model's own prediction layers are loaded beside it."""
    return request.draft is not None and request.draft.layout is None and request.draft.method in MTP_METHODS


def weights_of(
    sized: Sequence[tuple[Part, int]], stages: Sequence[range], tp: int, source: str, note: str = ""
) -> Weights:
    """The weights of these parts on the fullest rank."""
    ranks = [rank_bytes(sized, stage, tp) for stage in stages]
    fullest = ranks.index(max(ranks))
    return Weights(
        rank_bytes=ranks[fullest],
        low_bytes=ranks[fullest],
        high_bytes=ranks[fullest],
        total_bytes=sum(size for _, size in sized),
        source=source,
        parameters=total_values(tuple(part for part, _ in sized)),
        by_component=component_bytes(sized, stages[fullest], tp),
        by_stage=tuple(ranks),
        note=note,
        wide_layers_known=True,
    )


def stages_of(layers: Layout, request: CacheRequest) -> list[range]:
    """The layers of every pipeline stage."""
    counts = pipeline(layers, request)
    starts = [sum(counts[:stage]) for stage in range(len(counts))]
    return [range(start, start + count) for start, count in zip(starts, counts, strict=True)]


def _note(fullest: Sequence[int], known: bool) -> str:
    if known:
        return "the layers left wide are listed"
    return "which layers stay wide is not known" if min(fullest) < max(fullest) else ""


def layer_count(parts: Iterable[Part]) -> int:
    """The decoder layers that these parts belong to."""
    return 1 + max((part.layer for part in parts if part.layer is not None), default=-1)


def _choices(parts: Sequence[Part], weights: str, checkpoint: Checkpoint | None) -> list[set[str]]:
    """Names of the narrow parts: as expected first, then at most and at least."""
    if WEIGHT_ENCODINGS.get(weights, Encoding(4)).bits >= 16:
        return [set()]
    if checkpoint and checkpoint.wide_layers:
        linear = [part for part in parts if part.linear and part.component in LINEARS | {"lm_head", "drafter"}]
        return [{part.name for part in linear if not stays_wide(part.name, checkpoint.wide_layers)}]
    every = LINEARS | {"drafter"}
    most, least = NARROWED.get(weights, (every, every))
    present = {part.component for part in parts}
    if not present & {"experts", "state"}:
        least = most
    elif not present & least:
        least = frozenset({"mlp"})
    expected = least if weights in NARROWED else most
    return [{part.name for part in parts if part.component in chosen} for chosen in (expected, most, least)]


def stays_wide(name: str, patterns: Iterable[str]) -> bool:
    """Whether a module is under one of the patterns a checkpoint leaves wide, in either family of names."""
    spellings = (name, name.replace("self_attn", "attn").replace("mlp", "ffn"), name.removeprefix("lm_"))
    return any(_under(spelling, pattern) for spelling in spellings for pattern in patterns)


def _under(name: str, pattern: str) -> bool:
    """Whether a pattern names the module or one that holds it; a bare word names the last part."""
    if pattern.startswith("re:"):
        return bool(_compiled(pattern[3:]).match(name))
    words = name.split(".")
    holders = [".".join(words[:depth]) for depth in range(1, len(words) + 1)]
    return pattern == words[-1] or any(fnmatchcase(text, pattern) for text in (*holders, name + "."))


def _compiled(text: str) -> re.Pattern[str]:
    """A pattern of a config; one that could backtrack for long, or does not compile, matches nothing."""
    is_plain = len(text) < 200 and not NESTED.search(text) and len(re.findall(r"[*+]", text)) <= MAX_REPEATS
    try:
        return re.compile(text if is_plain else NEVER)
    except re.error:
        return re.compile(NEVER)


def part_bytes(part: Part, narrow_names: set[str], narrow: Encoding) -> int:
    """Bytes of one part; whatever is not narrow is 16 bits wide."""
    return narrow.stored_bytes(part.values) if part.name in narrow_names else 2 * part.values


def share(part: Part, tp: int) -> float:
    """The fraction of a part that one tensor-parallel rank holds."""
    if part.split == "none":
        return 1.0
    return max(1, -(-part.kv_heads // tp)) / part.kv_heads if part.split == "kv" and part.kv_heads else 1 / tp


def on_stage(part: Part, stage: range, last: bool, first: bool) -> bool:
    """Whether a pipeline stage holds a part: its layers, the embedding first, the output head last."""
    if part.layer is not None and part.component != "drafter":
        return part.layer in stage
    return last if part.component in ("lm_head", "norms", "drafter") else first


def rank_bytes(sized: Sequence[tuple[Part, int]], stage: range, tp: int) -> int:
    """Bytes that one rank of a stage holds."""
    return sum(component_bytes(sized, stage, tp).values())


def component_bytes(sized: Sequence[tuple[Part, int]], stage: range, tp: int) -> dict[str, int]:
    """Bytes by component on one rank of a stage; a tied head makes the last stage hold the embedding too."""
    layers = layer_count(part for part, _ in sized if part.component != "drafter")
    first, last = stage.start == 0, stage.stop >= layers
    tied = not any(part.component == "lm_head" for part, _ in sized)
    found: dict[str, int] = {}
    for part, size in sized:
        held = on_stage(part, stage, last, first) or (tied and last and part.component == "embedding")
        if held:
            found[part.component] = found.get(part.component, 0) + round(size * share(part, tp))
    return found
