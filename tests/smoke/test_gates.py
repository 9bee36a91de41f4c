"""The bars separate sound caches from broken ones on 20 seeds (rows of the smoke-test reference, section 5)."""

import pytest
import torch

from nvdash.smoke import numbers, oracle
from nvdash.smoke.attention import Shape
from nvdash.smoke.exercise import draw
from nvdash.smoke.records import record

SEEDS, TOKENS, PREFILL = range(20), 512, 64


def encoded(name: str, rows: torch.Tensor, scale: float | None = None):
    """Data, scales and decode scale of one side of a cache [tokens, heads, width]."""
    kind = record(name)
    scale = kind.scale_of(rows) if scale is None else scale
    return (*kind.encode(rows.flatten(0, 1), scale), scale)


def decoded(name: str, stored, like: torch.Tensor) -> torch.Tensor:
    return record(name).decode(*stored).view(like.shape)


def shifted(stored):
    """Every block reads its neighbour's scale."""
    data, scales, scale = stored
    return data, scales.roll(1, dims=1), scale


def outputs(shape, queries, keys, values):
    """Decode (one query) and prefill (the last 64 positions)."""
    both = oracle.attention(shape, queries[-PREFILL:], keys, values)
    return {"decode": both[-1:], "prefill": both}


def gates(data, got, stored, wide) -> tuple[bool, bool]:
    """Whether the kernel gate and the output gate let every phase pass."""
    checks = [
        check
        for phase in got
        for check in numbers.output_checks(phase, data, got[phase], stored[phase], wide[phase], 0.02)
    ]
    asserted = all(check.passed for check in checks if check.asserted)
    return asserted, all(check.passed for check in checks)


@pytest.mark.parametrize("width", [64, 128, 256])
@pytest.mark.parametrize("data", ["gaussian", "outlier"])
def test_the_gates_pass_every_sound_cache_and_no_broken_one(width, data):
    torch.set_num_threads(1)
    shape = Shape(8, 2, width, width)
    for seed in SEEDS:
        queries, keys, values = draw(shape, data, TOKENS, seed, "cpu")
        wide = outputs(shape, queries, keys, values)
        for name in ("bf16", "fp8_e4m3", "fp8_per_token_head", "nvfp4", "nvfp4_4over6"):
            sides = [decoded(name, encoded(name, side), side) for side in (keys, values)]
            stored = outputs(shape, queries, *sides)
            rounded = {phase: out.bfloat16() for phase, out in stored.items()}
            assert gates(data, rounded, stored, wide) == (True, True), (name, seed)
        k_stored, v_stored = encoded("nvfp4", keys), encoded("nvfp4", values)
        sound = decoded("nvfp4", k_stored, keys), decoded("nvfp4", v_stored, values)
        stored = outputs(shape, queries, *sound)
        broken = {
            "K scales shifted one block": (decoded("nvfp4", shifted(k_stored), keys), sound[1]),
            "V scales shifted one block": (sound[0], decoded("nvfp4", shifted(v_stored), values)),
            "pages shifted 16 tokens": tuple(side.roll(16, dims=0) for side in sound),
            "V almost zero": (sound[0], torch.randn(sound[1].shape) * 1e-3),
        }
        for bug, sides in broken.items():
            assert gates(data, outputs(shape, queries, *sides), stored, wide) == (False, False), (bug, seed)


def test_a_scale_that_clips_is_no_sound_cache():
    shape = Shape(8, 2, 128, 128)
    for seed in SEEDS:
        _, keys, values = draw(shape, "outlier", TOKENS, seed, "cpu")
        clipped = [decoded("nvfp4", encoded("nvfp4", side, 1e-3), side) for side in (keys, values)]
        assert numbers.rel_l2(clipped[0], keys) > numbers.STORED_REL_L2["nvfp4"]


@pytest.mark.parametrize("data", ["gaussian", "outlier"])
@pytest.mark.parametrize(("name", "low", "high"), [("fp8_e4m3", 0.024, 0.029), ("nvfp4", 0.085, 0.105)])
def test_stored_values_lie_where_theory_puts_them(name, low, high, data):
    for seed in SEEDS:
        _, keys, values = draw(Shape(8, 2, 128, 128), data, TOKENS, seed, "cpu")
        assert low < numbers.rel_l2(decoded(name, encoded(name, values), values), values) < high
        assert numbers.rel_l2(decoded(name, encoded(name, keys), keys), keys) < numbers.STORED_REL_L2[name]


def test_a_writer_that_shifts_scales_fails_the_stored_bar():
    for seed in SEEDS:
        _, keys, _ = draw(Shape(8, 2, 128, 128), "gaussian", TOKENS, seed, "cpu")
        got = decoded("nvfp4", shifted(encoded("nvfp4", keys)), keys)
        assert numbers.rel_l2(got, keys) > 2 * numbers.STORED_REL_L2["nvfp4"]
