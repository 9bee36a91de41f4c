"""What a cache format costs on synthetic data, without a kernel: a preview, never a quality score.

Errors do not accumulate over layers or steps here, and no task is scored.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from nvdash.smoke import numbers, oracle
from nvdash.smoke.attention import Shape
from nvdash.smoke.exercise import draw, latent_values
from nvdash.smoke.numbers import Check
from nvdash.smoke.records import Record

if TYPE_CHECKING:
    from torch import Tensor

SEEDS, TOKENS, QUERIES = (1, 2, 3), 512, 64
FP4_BYTES = {
    "blocks that saturate their scale": lambda scales: scales == 0x7E,
    "blocks stored as zero": lambda scales: scales == 0,
    "blocks with a subnormal scale": lambda scales: (scales > 0) & (scales < 8),
}


def preview(record: Record, shape: Shape, data: str, device: str) -> list[Check]:
    """The differences to an unquantised cache, mean and range over three seeds."""
    drawn = [dict(measures(record, shape, *draw(shape, data, TOKENS, seed, device))) for seed in SEEDS]
    checks = []
    for name in drawn[0]:
        values = [numbers_of_seed[name] for numbers_of_seed in drawn]
        mean, low, high = sum(values) / len(values), min(values), max(values)
        checks.append(Check(name, "compare", mean, asserted=False, data=data, low=low, high=high))
    return checks


def measures(
    record: Record, shape: Shape, queries: "Tensor", keys: "Tensor", values: "Tensor"
) -> "Iterator[tuple[str, float]]":
    """Named differences of one draw."""
    values = latent_values(shape, keys, values)
    stored_keys, key_scales = through(record, keys)
    stored_values, value_scales = (stored_keys[..., : shape.value_size], key_scales)
    if not shape.latent:
        stored_values, value_scales = through(record, values)
    yield "relative L2 of K", numbers.rel_l2(stored_keys, keys)
    yield "worst block of K", numbers.worst_block(stored_keys, keys)
    yield "relative L2 of V", numbers.rel_l2(stored_values, values)
    yield "worst block of V", numbers.worst_block(stored_values, values)
    if record.name.startswith("nvfp4"):
        for name, chosen in FP4_BYTES.items():
            yield name, share(chosen, key_scales, value_scales)
    wide, narrow = (oracle.logits(shape, queries[-QUERIES:], side) for side in (keys, stored_keys))
    yield "logit RMSE", numbers.logit_rmse(narrow, wide)
    yield "KL divergence, nats", numbers.divergence(narrow, wide)
    yield "top-32 overlap", numbers.top_overlap(narrow, wide)
    outputs = [
        oracle.attention(shape, queries[-QUERIES:], *pair) for pair in ((stored_keys, stored_values), (keys, values))
    ]
    yield "relative L2 of the output", numbers.rel_l2(*outputs)


def through(record: Record, rows: "Tensor") -> "tuple[Tensor, Tensor]":
    """Rows after one trip through the format, and the scale bytes it kept."""
    flat = rows.flatten(0, 1)
    scale = record.scale_of(rows)
    data, scales = record.encode(flat, scale)
    return record.decode(data, scales, scale).view(rows.shape), scales


def share(chosen: "Callable[[Tensor], Tensor]", *scales: "Tensor") -> float:
    """The share of scale bytes that are so."""
    return sum(float(chosen(part).float().mean()) for part in scales) / len(scales)
