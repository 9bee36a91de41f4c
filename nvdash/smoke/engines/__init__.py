"""One adapter per engine: `run(spec, phases) -> facts`, imported by a case under the engine's own interpreter."""

import platform
from typing import Any


def gpu_facts() -> dict[str, Any]:
    """Device, capability, architecture, torch and CUDA of this interpreter."""
    import torch

    facts: dict[str, Any] = {"torch": str(torch.__version__), "python": platform.python_version()}
    if not torch.cuda.is_available():
        return {**facts, "device": "cpu", "arch": "cpu"}
    major, minor = torch.cuda.get_device_capability()
    return {
        **facts,
        "device": "cuda",
        "gpu": torch.cuda.get_device_name(),
        "compute_capability": f"{major}.{minor}",
        "arch": f"sm{major}{minor}",
        "cuda": torch.version.cuda,
        "arch_list": torch.cuda.get_arch_list(),
    }
