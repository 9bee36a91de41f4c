"""Codec speed as ratios to torchao, modelopt and a plain copy, one CPU thread, one process, printed as JSON.

Run with nvdash on the path of an environment that holds the libraries: PYTHONPATH=. python tests/bench/codec.py
A library that is not installed gives null.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib import metadata

import torch

from nvdash.smoke import nvfp4

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


def measure(work: Work, repetitions: int) -> dict[str, float]:
    """Best seconds of each, taken in turns so that a busy moment hits all alike."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(repetitions):
        for name, function in work.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    values = torch.randn(options.mib * 2**20 // 256, 128, generator=torch.Generator().manual_seed(1)).bfloat16()
    scale = nvfp4.decode_scale(values)
    versions = {name: installed(package) for name, package in PACKAGES.items()}
    work = own_work(values, scale)
    for name, make in (("torchao", torchao_work), ("modelopt", modelopt_work)):
        work |= make(values, torch.tensor(scale)) if versions[name] else {}
    seconds = measure(work, options.repetitions)
    gigabytes = values.numel() * 2 / 1e9
    ratios = {
        f"{task}_over_{other}": round(seconds[f"{task}/{other}"] / seconds[f"{task}/nvdash"], 2)
        if f"{task}/{other}" in seconds
        else None
        for task in ("quantize", "dequantize")
        for other in ("torchao", "modelopt")
    }
    shares = {
        f"{task}_of_copy": seconds["copy/copy"] / seconds[f"{task}/nvdash"] for task in ("quantize", "dequantize")
    }
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                **versions,
                "gb_per_s": {name: round(gigabytes / spent, 3) for name, spent in seconds.items()},
                "ratios": {**ratios, **{name: round(share, 4) for name, share in shares.items()}},
            },
            indent=1,
        )
    )


PACKAGES = {"torchao": "torchao", "modelopt": "nvidia-modelopt"}

if __name__ == "__main__":
    main()
