"""How far two tensors are apart, and the bars that a smoke test holds them to.

Asserted: what was stored against what was written, and the kernel against FP32 attention on the same stored cache.
Previewed: the stored cache against an unquantised one, which is the price of the format on synthetic data and no
measure of a model's quality.
"""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

KERNEL_REL_L2 = {"bf16": 0.02, "fp8": 0.10}
"""Kernel against FP32 on the same cache, by query dtype. The bar for FP8 queries is a proposal: no GPU run set it."""
OTHER_VALUES = 0.005
"""Share of FP4 values that a kernel's approximate reciprocal may round to the other neighbour; no GPU run set it."""
STORED_REL_L2 = {
    "bf16": 0.003,
    "fp8_e4m3": 0.035,
    "fp8_per_token_head": 0.035,
    "int8_per_token_head": 0.035,
    "nvfp4": 0.13,
    "nvfp4_4over6": 0.13,
    "fp8_ds_mla": 0.035,
    "nvfp4_ds_mla": 0.13,
}
"""Stored keys or values against what was written, on Gaussian and on outlier data."""
OUTPUT_BARS = {"gaussian": (0.97, 0.20), "outlier": (0.95, 0.32)}
"""Attention output against the unquantised cache: lowest cosine, highest relative L2 that a sound 4-bit cache has."""


@dataclass(frozen=True, slots=True)
class Check:
    """One number, the bar it is held to, and what it says; `bar` None only shows a number."""

    name: str
    phase: str
    value: float
    bar: float | None = None
    asserted: bool = True
    higher_is_better: bool = False
    data: str = ""
    heads: str = ""
    low: float | None = None
    high: float | None = None
    """The range over seeds, where there were several."""

    @property
    def passed(self) -> bool | None:
        """Whether the bar is met; None where there is none."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.higher_is_better else self.value <= self.bar

    def as_dict(self) -> dict[str, Any]:
        """A JSON object; a value that is no number is null."""
        plain = {
            key: None if isinstance(item, float) and not math.isfinite(item) else item
            for key, item in asdict(self).items()
        }
        return {**plain, "passed": self.passed}


def rel_l2(got: "Tensor", want: "Tensor") -> float:
    """The length of the difference over the length of what was wanted; infinite when a value is not finite."""
    distance = float((got.float() - want.float()).norm()) / max(float(want.float().norm()), 1e-30)
    return distance if math.isfinite(distance) else math.inf


def cosine(got: "Tensor", want: "Tensor") -> float:
    """The cosine between two tensors as vectors."""
    one, other = got.double(), want.double()
    lengths = float(one.norm() * other.norm())
    return float((one * other).sum()) / lengths if lengths else 0.0


def share_apart(got: "Tensor", want: "Tensor") -> float:
    """The share of values that differ by more than FP32 rounding."""
    apart = (got.float() - want.float()).abs() > 1e-6 * want.float().abs()
    return float(apart.float().mean())


def worst_block(got: "Tensor", want: "Tensor", size: int = 16) -> float:
    """The largest relative L2 of any block of 16 values: a mean hides a block that vanished."""
    error = (got.float() - want.float()).unflatten(-1, (-1, size)).norm(dim=-1)
    return float((error / want.float().unflatten(-1, (-1, size)).norm(dim=-1).clamp(min=1e-30)).max())


def logit_rmse(got: "Tensor", want: "Tensor") -> float:
    """Root mean square difference of attention logits, masked places left out."""
    import torch

    seen = torch.isfinite(want)
    return float((got[seen] - want[seen]).square().mean().sqrt())


def divergence(got: "Tensor", want: "Tensor") -> float:
    """Mean KL divergence in nats of the attention weights of `got` from those of `want`, both given as logits."""
    import torch

    first, second = torch.log_softmax(want, dim=-1), torch.log_softmax(got, dim=-1)
    gap = torch.where(torch.isfinite(first), first.exp() * (first - second), torch.zeros_like(first))
    return float(gap.sum(dim=-1).mean())


def top_overlap(got: "Tensor", want: "Tensor", count: int = 32) -> float:
    """The share of the `count` most attended tokens that both agree on."""
    count = min(count, want.shape[-1])
    first, second = (logits.topk(count, dim=-1).indices for logits in (got, want))
    return float((first.unsqueeze(-1) == second.unsqueeze(-2)).any(dim=-1).float().mean())


def output_checks(phase: str, data: str, got: "Tensor", stored: "Tensor", wide: "Tensor", bar: float) -> list[Check]:
    """The checks of one phase: `got` from the kernel, `stored` and `wide` from the FP32 path on the two caches."""
    import torch

    lowest, highest = OUTPUT_BARS[data]
    scale = float(stored.float().norm())
    return [
        Check("finite share", phase, float(torch.isfinite(got.float()).float().mean()), 1.0, True, True, data),
        Check("output length over FP32", phase, float(got.float().norm()) / scale, 0.5, True, True, data),
        Check("relative L2, kernel to FP32 on the stored cache", phase, rel_l2(got, stored), bar, True, False, data),
        Check("cosine to the unquantised cache", phase, cosine(got, wide), lowest, False, True, data),
        Check("relative L2 to the unquantised cache", phase, rel_l2(got, wide), highest, False, False, data),
    ]
