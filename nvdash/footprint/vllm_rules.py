"""Which allocator rules a vLLM release follows, as data: each row is a step that holds from its release on.

Read in the released sources of 0.9.2, 0.10.2 to 0.14.1 and 0.16.0 to 0.33.0 (vllm/v1/core/kv_cache_utils.py, from 0.33
kv_cache_planning.py; vllm/v1/kv_cache_interface.py; vllm/platforms/interface.py; vllm/model_executor/models/config.py).
Earlier releases rest on the start-up logs of `memory-rules`: one flat pool of blocks, every layer counted in full.
0.15 has no released source and takes the rules of 0.14.
"""

from dataclasses import dataclass, replace
from typing import Any

from nvdash.errors import UsageError

NEWEST_READ = "0.33.0"
NULL_BLOCK_SINCE = "0.29.0"


@dataclass(frozen=True, slots=True)
class VllmRules:
    """What decides groups, blocks and printed tokens in one range of releases."""

    since: str = "0.2.5"
    until: str | None = None
    """First release with other rules; None for the newest range."""
    flat: bool = True
    """One pool, every layer counted in full, concurrency = slots over length."""
    pool_null_block: bool = False
    """The pool of blocks keeps its first one to itself (vllm/v1/core/block_pool.py:66 in 0.9.2)."""
    global_groups: bool = False
    """Groups are formed over the layers of all pipeline ranks, not per rank."""
    uniform_types: bool = False
    """Full-attention layers of different widths share one group."""
    unify: str = "none"
    """none (unequal pages refuse), ratio, pad (attention pages may be padded), pad_state (state pages too)."""
    group_percent: int = 0
    """Use the largest bucket as group size when it is under this per cent of the smallest; 0 never."""
    mode_states: str = "one"
    """Blocks of a state: one, length (caching keeps one per block), mode (by caching mode)."""
    all_mode: bool = False
    """Prefix caching of Mamba layers keeps a state per block where the class supports it."""
    draft_states: bool = False
    """Every drafted token keeps a state of its own."""
    draft_cached_states: bool = False
    """It does so too where a state is kept per block."""
    drafts_align: bool = False
    """A drafter turns the state-per-block mode into the aligned one."""
    unset_state_type: str = "model"
    """Type of recurrent states whose class leaves it to the engine (Nemotron-H)."""
    chunked_groups: bool = False
    """Chunked layers keep their chunk; before, the hybrid manager was off for them."""
    retained_drafts: bool = False
    """A drafter of several modules keeps its re-read tokens below the window."""
    hybrid_prefix_caching: bool | None = None
    """Whether prefix caching is on by default for models with states; None: not possible."""
    latent_align: int = 64
    """Tokens that the block of a latent hybrid is a multiple of, at least."""
    backend_aligns: bool = False
    """The smallest block of the chosen backend aligns it, not a number of the engine's own."""
    user_block_aligns: bool = False
    """The attention block of a hybrid is a multiple of the asked block size."""
    in_flight_batches: bool = False
    """Windows keep the tokens of every batch in flight, not of one."""
    concurrency_tokens: bool = False
    """Printed tokens are requests times length, not block slots."""
    largest_batch: bool = False
    """Devices of 160 GiB and more have a larger default batch."""
    null_block: bool = False
    """The start-up check holds one block back."""
    check: str = "layers"
    """What the start-up check counts: bare layers, the first group alone, or all padded groups."""
    packing: str = ""
    """How pages of several sizes share a block (DeepSeek-V4): tuples, slots, widest; empty refuses them."""
    packed_pages_weighed: bool = False
    """A request's pages count by the size of their group, not one by one."""
    packed_balanced: bool = False
    """Groups are split by the balanced buckets alone."""
    plain_alignment: int = 1
    """Bytes that pages of plain compressed rows are padded to."""
    skip_padding: str = "none"
    """Layers kept at 16 bits beside a quantised cache: none, unify (by block ratio), pad (to one shared page)."""


STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("0.9.0", {"flat": False, "pool_null_block": True}),
    ("0.11.0", {"global_groups": True, "uniform_types": True}),
    (
        "0.12.0",
        {
            "unify": "ratio",
            "group_percent": 125,
            "mode_states": "length",
            "all_mode": True,
            "hybrid_prefix_caching": False,
        },
    ),
    ("0.13.0", {"unset_state_type": "float16"}),
    ("0.14.0", {"check": "first", "chunked_groups": True}),
    ("0.16.0", {"mode_states": "mode", "draft_states": True}),
    ("0.18.0", {"group_percent": 150}),
    ("0.19.0", {"check": "groups"}),
    (
        "0.20.0",
        {
            "packing": "tuples",
            "packed_pages_weighed": True,
            "user_block_aligns": True,
            "latent_align": 16,
            "backend_aligns": True,
            "skip_padding": "unify",
            "drafts_align": True,
            "unset_state_type": "float32",
        },
    ),
    ("0.21.0", {"concurrency_tokens": True}),
    ("0.22.0", {"draft_cached_states": True, "drafts_align": False}),
    ("0.23.0", {"packing": "slots"}),
    ("0.24.0", {"unify": "pad"}),
    ("0.25.0", {"skip_padding": "pad"}),
    (
        "0.26.0",
        {"unify": "pad_state", "in_flight_batches": True, "hybrid_prefix_caching": True, "plain_alignment": 512},
    ),
    ("0.27.0", {"latent_align": 128, "packing": "widest", "packed_pages_weighed": False}),
    ("0.28.0", {"all_mode": False, "retained_drafts": True, "largest_batch": True}),
    (NULL_BLOCK_SINCE, {"null_block": True, "packed_balanced": True}),
)


def _ranges() -> tuple[VllmRules, ...]:
    rows = [VllmRules()]
    for since, change in STEPS:
        rows[-1] = replace(rows[-1], until=since)
        rows.append(replace(rows[-1], since=since, until=None, **change))
    return tuple(rows)


RANGES = _ranges()


def version(release: str) -> tuple[int, ...]:
    """The numbers of a release, for comparing: 0.24.1.dev0 is 0.24.1."""
    numbers: list[int] = []
    for part in release.removeprefix("v").split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    if not numbers:
        raise UsageError("release", "a release such as 0.33.0", f"found {release!r}")
    return tuple(numbers + [0] * (4 - len(numbers)))


def rules_of(release: str | None) -> VllmRules:
    """The rules of a release; the newest range when none is named, refused before the first one."""
    if release is None:
        return RANGES[-1]
    asked = version(release)
    if asked < version(RANGES[0].since):
        raise UsageError("release", f"vLLM {RANGES[0].since} or later", f"found {release}")
    return next(row for row in reversed(RANGES) if asked >= version(row.since))


def range_text(rules: VllmRules, release: str | None) -> str:
    """The range in words; a release newer than any that was read says so."""
    until = f"up to {NEWEST_READ}" if rules.until is None else f"before {rules.until}"
    text = f"vLLM {rules.since} and later, {until}"
    if release is not None and version(release) > version(NEWEST_READ):
        return f"{text}; {release} was not read"
    return text
