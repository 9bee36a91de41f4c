"""Codec speed as ratios to torchao, modelopt and a plain copy, one CPU thread, one process, printed as JSON.

Run by an interpreter that holds torch and the libraries; a library that is not installed gives null.
"""

import argparse
import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from timing import in_turns, row  # noqa: E402

from nvdash.smoke import nvfp4  # noqa: E402

Work = dict[str, Callable[[], object]]


def torchao_work(values: torch.Tensor, scale: torch.Tensor) -> Work:
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, nvfp4_quantize

    stored = NVFP4Tensor.to_nvfp4(values, per_tensor_scale=scale)
    return {
        "quantize/torchao": lambda: nvfp4_quantize(values, 16, scale),
        "dequantize/torchao": lambda: stored.dequantize(torch.bfloat16),
    }


def modelopt_work(values: torch.Tensor, scale: torch.Tensor) -> Work:
    from modelopt.torch.quantization.qtensor import NVFP4QTensor

    stored, scales, double = NVFP4QTensor.quantize(values, 16, None, scale)
    options = {"scale": scales, "double_scale": double, "block_sizes": {-1: 16}}
    return {
        "quantize/modelopt": lambda: NVFP4QTensor.quantize(values, 16, None, scale),
        "dequantize/modelopt": lambda: stored.dequantize(torch.bfloat16, **options),
    }


def own_work(values: torch.Tensor, scale: float) -> Work:
    packed, scales = nvfp4.quantize(values, scale)
    return {
        "copy/copy": lambda: values.clone(),
        "quantize/nvdash": lambda: nvfp4.quantize(values, scale),
        "dequantize/nvdash": lambda: nvfp4.dequantize(packed, scales, scale),
    }


def installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def rows(mib: int = 16, repetitions: int = 5) -> list[dict[str, Any]]:
    """Both directions of the codec against every library that is installed, and as a share of copy bandwidth."""
    torch.set_num_threads(1)
    values = torch.randn(mib * 2**20 // 256, 128, generator=torch.Generator().manual_seed(1)).bfloat16()
    scale = nvfp4.decode_scale(values)
    work = own_work(values, scale)
    for name, make in (("torchao", torchao_work), ("modelopt", modelopt_work)):
        work |= make(values, torch.tensor(scale)) if installed(PACKAGES[name]) else {}
    times, gigabytes = in_turns(work, repetitions), values.numel() * 2 / 1e9
    speed = {name: gigabytes / spent.wall_s for name, spent in times.items()}
    return [codec_row(task, speed, other) for task in ("quantize", "dequantize") for other in ("copy", *PACKAGES)]


def codec_row(task: str, speed: dict[str, float], other: str) -> dict[str, Any]:
    """One direction in GB/s of 16-bit values, and how many times that of another library or of a copy it is."""
    ours, theirs = speed[f"{task}/nvdash"], speed.get("copy/copy" if other == "copy" else f"{task}/{other}")
    version = torch.__version__ if other == "copy" else installed(PACKAGES[other])
    ratio = {"ratio": ours / theirs} if theirs else {"ratio": None}
    return row(f"codec {task}", ours, "GB/s", baseline=other, baseline_version=version, **ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(rows(options.mib, options.repetitions), indent=1))


PACKAGES = {"torchao": "torchao", "modelopt": "nvidia-modelopt"}

if __name__ == "__main__":
    main()
