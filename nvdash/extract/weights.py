"""The weights stage: which architectures a quantisation method asks for, and the GEMM kernel an NVFP4 layer gets."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from nvdash.extract.compiled_ops import fp4_built
from nvdash.extract.context import ARCHITECTURES, Cell
from nvdash.extract.facts import called, quantization_classes, row
from nvdash.extract.frames import Place, Raised
from nvdash.extract.interp import Interpreter
from nvdash.extract.locate import find
from nvdash.extract.selector import Selector, method_line
from nvdash.extract.statements import Atom, Reading, arch_name, frozen
from nvdash.extract.values import ClassRef, EnumMember, FunctionRef, Unknown

FILE = "weights"
WHEEL = "official_wheel"
DATA = Path(__file__).with_name("kernels.yaml")


@cache
def kernel_rows() -> tuple[dict[str, Any], ...]:
    """How kernels of the NVFP4 GEMM compute, by the start of their name."""
    from nvdash.readers.yaml_rows import read_rows

    return tuple(dict(row) for row in read_rows(DATA))


def weights(selector: Selector, reading: Reading) -> None:
    """Add the minimum capability of every method and the NVFP4 kernel of every architecture."""
    for name, cls in quantization_classes(selector).items():
        _method(selector, name, cls, reading)
    for arch in ARCHITECTURES:
        _nvfp4(selector, arch, reading)


def _method(selector: Selector, name: str, cls: ClassRef, reading: Reading) -> None:
    cell = Cell(90, "auto", 128)
    least = called(selector, cls, "get_min_capability", cell, [])
    place = method_line(selector.interpreter(cell), cls, "get_min_capability")
    if not isinstance(least, int) or place is None or least < 0:
        return
    for arch in ARCHITECTURES:
        if arch < least:
            words = f"the method asks for compute capability {least / 10}"
            said: dict[str, Any] = {"verdict": "refused", "layer": "config", "reason": words}
        else:
            said = {"verdict": "expected"}
        reading.add(Atom(FILE, "quant", frozen(said), frozen({"method": name}), arch_name(arch)), place)


def _nvfp4(selector: Selector, arch: int, reading: Reading) -> None:
    chosen = nvfp4_kernel(selector, arch)
    if chosen is None:
        return
    name, place, used, needs = chosen
    when = frozen({"weights": "nvfp4"})
    if name is None:
        reason = "which NVFP4 GEMM kernel runs is not decided by the source alone"
        said: dict[str, Any] = {"verdict": "unknown", "reason": reason, "part": "linear"}
        reading.undecided += 1
    elif name == "":
        said = {"verdict": "refused", "layer": "constructor", "reason": "no NVFP4 GEMM kernel is supported here"}
        said["part"] = "linear"
    else:
        flashinfer = True if name.lower().startswith("flashinfer") else None
        said = {
            "verdict": "expected",
            "part": "linear",
            "path": name,
            **_nature(name),
            "requires_flashinfer": flashinfer,
        }
    reading.add(Atom(FILE, "quant", frozen(said), when, arch_name(arch)), place, used, needs)


def _nature(name: str) -> dict[str, Any]:
    """Kernel kind and arithmetic of a kernel, by the first row whose words its name holds."""
    row = next((r for r in kernel_rows() if r["holds"] in name.lower()), {"kernel": "unknown"})
    return {"kernel": row["kernel"], "compute": row.get("compute")}


Chosen = tuple[str | None, Place, frozenset[str], tuple[str, ...]]
"""A kernel's name ("" when none is supported, None when undecided), the line, assumptions and what is open."""


def nvfp4_kernel(selector: Selector, arch: int) -> Chosen | None:
    """The kernel that a release picks for W4A4 linear layers, or None where it has no such choice in one place."""
    run = selector.interpreter(Cell(arch, "auto", 128))
    built = fp4_built(selector.tree, arch)
    run.assumptions.assume(WHEEL, {"cutlass_scaled_mm_supports_fp4": built, "cutlass_scaled_fp4_mm_supported": built})
    if find(selector.tree, "nvfp4_kernels"):
        return _first_supported(selector, run)
    found = find(selector.tree, "nvfp4_selector")
    if found is None:
        return None
    module, _, node = found
    names = {_outcome(path) for path in run.paths(FunctionRef(module, node), {})}
    place = (module.path, node.lineno)
    used = frozenset(run.used)
    return (next(iter(names)), place, used, ()) if len(names) == 1 else (None, place, used, ("the choice of kernel",))


def _outcome(path: Any) -> str | None:
    if path.raised:
        return ""
    return str(path.value.value) if isinstance(path.value, EnumMember) else None


def kernel_order(selector: Selector, run: Interpreter) -> tuple[list[ClassRef], Place]:
    """The CUDA kernels in the order they are tried."""
    found = find(selector.tree, "nvfp4_kernels")
    if found is None:
        return [], ("", 0)
    module, name, node = found
    table = run.scope.module_name(module, name)
    rows = table.items() if isinstance(table, dict) else ()
    order: list[Any] = next((kernels for key, kernels in rows if getattr(key, "name", "") == "CUDA"), [])
    return [kernel for kernel in order if isinstance(kernel, ClassRef)], (module.path, node.lineno)


def _first_supported(selector: Selector, run: Interpreter) -> Chosen:
    order, listed = kernel_order(selector, run)
    used: frozenset[str] = frozenset()
    for cls in order:
        answers, why, seen = _supported(run, cls)
        used |= seen
        place = method_line(run, cls, "is_supported") or listed
        if answers == {True}:
            return _short(cls), place, used, ()
        if answers != {False}:
            return None, place, used, (f"whether {_short(cls)} is supported: {why}",)
    return "", listed, used, ()


def _supported(run: Interpreter, cls: ClassRef) -> tuple[set[Any], str, frozenset[str]]:
    """What `is_supported` says on each path: true, false or unknown."""
    answers: set[Any] = set()
    why, used = "", frozenset[str]()
    try:
        method = run.scope.class_attribute(cls, "is_supported", cls, 0)
        for path in run.paths(method, {}):
            value = path.value[0] if isinstance(path.value, tuple) and path.value else path.value
            answers.add(value if isinstance(value, bool) else None)
            why = value.why if isinstance(value, Unknown) else next((key for key, _ in path.decided), why)
            used |= path.used
    except Raised:
        answers.add(None)
    return answers, why, used


def _short(cls: ClassRef) -> str:
    return cls.name.removesuffix("LinearKernel").replace("NvFp4", "")


def facts(selector: Selector) -> Iterator[dict[str, Any]]:
    """The kernel order and the kernel per architecture."""
    run = selector.interpreter(Cell(90, "auto", 128))
    order, place = kernel_order(selector, run)
    if order:
        yield {
            "fact": "nvfp4_gemm.kernel_order",
            "value": [_short(c) for c in order],
            "path": place[0],
            "line": place[1],
        }
    for arch in ARCHITECTURES:
        chosen = nvfp4_kernel(selector, arch)
        if chosen and chosen[0]:
            yield row(f"nvfp4_gemm.kernel.sm{arch}", chosen[0], chosen[1])
