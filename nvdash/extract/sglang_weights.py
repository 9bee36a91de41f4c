"""SGLang's weight-quantisation methods as atoms: minimum capability, and the FP4 GEMM that `auto` becomes."""

from collections.abc import Iterable, Mapping
from typing import Any

from nvdash.extract.findings import Fact
from nvdash.extract.sglang_config import ARCHITECTURES
from nvdash.extract.sglang_facts import FP4_UTILS
from nvdash.extract.statements import Atom, Reading, frozen

FORMATS = {"modelopt_fp4": "nvfp4", "fp8": "fp8", "mxfp8": "mxfp8", "mxfp4": "mxfp4", "awq": "awq", "gptq": "gptq"}
"""The method by which a checkpoint of this number format is usually read; its rule is stated for the format."""
NAMED = ("modelopt_fp4", "nvfp4_online", "modelopt_fp8", "petit_nvfp4", "awq_marlin", "gptq_marlin", "w8a8_fp8")
SCHEMES = {"compressed_tensors.w4a16_nvfp4": "W4A16", "compressed_tensors.w4a4_nvfp4": "W4A4"}


def read(facts: Iterable[Fact], reading: Reading) -> None:
    """The atoms of the weights stage."""
    known = {
        fact.fact.removeprefix("quant.").removesuffix(".min_capability"): fact
        for fact in facts
        if fact.fact.startswith("quant.") and fact.fact.endswith(".min_capability")
    }
    gemm = next((fact for fact in facts if fact.fact == "quant.modelopt_fp4.auto_gemm"), None)
    for method, fact in known.items():
        for when in _subjects(method, known):
            for arch in ARCHITECTURES:
                _one(fact, method, when, arch, gemm, reading)
    _compressed_tensors(known, reading)


def _subjects(method: str, known: Mapping[str, Fact]) -> Iterable[dict[str, Any]]:
    if method in FORMATS:
        yield {"weights": FORMATS[method]}
    if method in NAMED and method not in FORMATS:
        yield {"method": method}


def _one(fact: Fact, method: str, when: Mapping[str, Any], arch: str, gemm: Fact | None, reading: Reading) -> None:
    number = int(arch.removeprefix("sm"))
    place = (fact.path, fact.line or 0)
    if number < fact.value:
        said: dict[str, Any] = {
            "verdict": "refused",
            "layer": "config",
            "reason": f"{method} needs compute capability {fact.value}",
        }
    else:
        said = {"verdict": "expected", **(_fp4_gemm(number, gemm) if when.get("weights") == "nvfp4" else {})}
    reading.add(Atom("weights", "quant", frozen(said), frozen(when), arch), place, frozenset({"cuda_platform"}))


def _fp4_gemm(number: int, gemm: Fact | None) -> dict[str, Any]:
    """Path and kernel kind of the automatic GEMM; unknown in releases whose source does not name it."""
    if gemm is None or gemm.path != FP4_UTILS:
        return {"kernel": "native" if number >= 100 else "unknown"}
    key = "sm80-sm90" if number < 100 else "sm100" if number < 110 else "sm120"
    path = str(gemm.value[key])
    return {"path": path.partition(" ")[0], "kernel": "dequant" if "weight only" in path else "native"}


def _compressed_tensors(known: Mapping[str, Fact], reading: Reading) -> None:
    """NVFP4 through compressed-tensors: W4A4 needs SM100; SM80 on has the weight-only scheme from 0.5.22."""
    wide = known.get("compressed_tensors.w4a4_nvfp4")
    narrow = known.get("compressed_tensors.w4a16_nvfp4")
    for arch in ARCHITECTURES if wide else ():
        number = int(arch.removeprefix("sm"))
        if wide is None or number >= wide.value:
            continue
        open_scheme = narrow is not None and number >= narrow.value
        said = {
            "verdict": "conditional" if open_scheme else "refused",
            "layer": None if open_scheme else "config",
            "reason": "a W4A16 checkpoint runs weight-only, a W4A4 checkpoint is refused below SM100"
            if open_scheme
            else f"compressed-tensors W4A4 NVFP4 needs compute capability {wide.value}",
        }
        when = {"weights": "nvfp4", "method": "compressed-tensors"}
        reading.add(
            Atom("weights", "quant", frozen(said), frozen(when), arch),
            (wide.path, wide.line or 0),
            frozenset({"cuda_platform"}),
        )
