"""What the kernel files of a flashinfer-cubin wheel are built for: SM, types, head size and phase, from their names.

The list is read from the wheel's table of contents; the files themselves hold nothing that is needed here.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError
from nvdash.extract.findings import Fact, limits
from nvdash.extract.statements import Atom, Reading, frozen

FOLDER = "/fmha/trtllm-gen/"
PLACE = "file names under fmha/trtllm-gen"
TYPE = r"[A-Z][a-z]*\d+(?:m\d+)?"
NAME = re.compile(
    rf"^fmhaSm(?P<sm>\d+[a-z]?)Kernel_Q(?:kv(?P<both>{TYPE})|(?P<q>{TYPE})Kv(?P<kv>{TYPE}))"
    rf"O(?P<o>{TYPE})H(?P<head>\d+|Qk\d+H?V\d+)(?P<rest>.*)\.cubin$"
)
DTYPES = {"E2m1": "nvfp4", "E4m3": "fp8_e4m3", "Bfloat16": "bfloat16", "Fp16": "float16"}
PHASES = {"context": "prefill", "generation": "decode"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel file, as its name describes it."""

    sm: str
    q: str
    kv: str
    output: str
    head: str
    phase: str
    is_paged: bool


def kernels(names: Iterable[str]) -> Iterator[Kernel]:
    """The attention kernels among the files of a wheel."""
    for name in names:
        match = NAME.match(name.rpartition("/")[2]) if FOLDER in name else None
        if match:
            both = match["both"]
            phase = "context" if match["rest"].endswith("Context") else "generation"
            yield Kernel(
                match["sm"],
                both or match["q"],
                both or match["kv"],
                match["o"],
                match["head"],
                phase,
                "PagedKv" in match["rest"],
            )


def names_in(wheel: Path) -> list[str]:
    """The file names of a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile) as exc:
        raise NvdashError(
            str(wheel),
            "a wheel of flashinfer-cubin",
            f"it cannot be read ({exc})",
            "fetch it again with pip download --no-deps",
        ) from exc


def read(names: Iterable[str]) -> list[Fact]:
    """The facts of one wheel, for every pair of query and cache type that has paged kernels."""
    paged = [kernel for kernel in kernels(names) if kernel.is_paged]
    facts = []
    for q, kv in sorted({(kernel.q, kernel.kv) for kernel in paged}):
        group = [kernel for kernel in paged if (kernel.q, kernel.kv) == (q, kv)]
        shown: dict[str, Any] = {"phases": _phases(group), "head_dims": _head_sizes(group)}
        if kv == "E2m1":
            shown = {
                "sm": _sorted(k.sm for k in group),
                "head_dims": _head_sizes(group),
                "phases": _phases(group),
                "output": _sorted(k.output for k in group),
            }
        facts.append(Fact(f"trtllm_gen.paged.Q{q}_Kv{kv}", shown, PLACE, None))
    wide = [kernel for kernel in paged if (kernel.q, kernel.kv, kernel.phase) == ("Bfloat16", "Bfloat16", "context")]
    if wide:
        facts.append(Fact("trtllm_gen.paged.head_dims.bf16_context", _head_sizes(wide), PLACE, None))
    return facts


def _sorted(values: Iterable[str]) -> list[str]:
    return sorted(set(values), key=lambda value: (int(re.sub(r"\D", "", value) or 0), value))


def _phases(group: Iterable[Kernel]) -> list[str]:
    return sorted({kernel.phase for kernel in group})


def _head_sizes(group: Iterable[Kernel]) -> list[int]:
    """Head sizes of kernels whose keys and values are equally wide."""
    return sorted({int(kernel.head) for kernel in group if kernel.head.isdigit()})


def read_release(names: Iterable[str], release: str) -> Reading:
    """The facts and atoms of one wheel: present kernels are expected, an absent head size is refused by the kernel."""
    listed = list(names)
    reading = Reading(release)
    reading.facts = [fact.as_row() for fact in read(listed)]
    paged = [kernel for kernel in kernels(listed) if kernel.is_paged]
    for kv in sorted({kernel.kv for kernel in paged} & DTYPES.keys()):
        for phase, stage in PHASES.items():
            group = [k for k in paged if (k.kv, k.phase) == (kv, phase)]
            sizes = _head_sizes(group)
            for arch in _architectures(group):
                _atoms(reading, kv, stage, arch, sizes)
    return reading


def _architectures(group: Iterable[Kernel]) -> list[str]:
    """sm100 and sm103 from targets 100a, 100f (a family: both) and 103a."""
    found = set()
    for kernel in group:
        found |= {"sm100", "sm103"} if kernel.sm == "100f" else {f"sm{kernel.sm.rstrip('af')}"}
    return sorted(found)


def _atoms(reading: Reading, kv: str, stage: str, arch: str, sizes: list[int]) -> None:
    base = {"backend": "trtllm-gen", "mla": False}
    if not sizes:
        return
    listed = {"stage": [stage], "evidence_level": "document"}
    yes = {**listed, "verdict": "expected", "kernel": "native"}
    no = {**listed, "verdict": "trap", "layer": "kernel", "reason": "no kernel file for this head size"}
    for said, limit in ((yes, sizes), (no, {"not": sizes})):
        when = frozen(limits({**base, "head_size": limit}))
        reading.add(Atom("kernels", "support", frozen(said), when, arch, DTYPES[kv]), (PLACE, 0))
