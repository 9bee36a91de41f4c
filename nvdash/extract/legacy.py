"""Releases before the registry (0.9 to 0.11): one hand-written choice per platform, read for GQA layers.

The choice looks at architecture, cache dtype and head size only. Whether the chosen backend reads a quantised
cache, and which MLA backend runs, is decided elsewhere in those engines, so both stay unknown.
"""

import ast
from collections.abc import Iterator
from typing import Any

from nvdash.extract.context import ARCHITECTURES, Cell
from nvdash.extract.frames import Place
from nvdash.extract.locate import find, require
from nvdash.extract.selector import Selector
from nvdash.extract.source import ExtractError
from nvdash.extract.statements import Atom, Reading, arch_name, frozen
from nvdash.extract.values import Bound, ClassRef

HOOK = "get_attn_backend_cls"
FACT = "legacy_winner.gqa.head128.bf16"
FACT_ARCHITECTURES = (75, 80, 89, 90, 100, 103, 120)
FACT_DTYPES = ("auto", "fp8")
BACKENDS = "vllm/v1/attention/backends"
HEAD_HELPERS = ("supports_head_size", "is_attn_backend_supported")
ASSUMED = "head_size_accepted"


def is_legacy(selector: Selector) -> bool:
    """Whether a release chooses its backend without a priority list."""
    return find(selector.tree, "priorities") is None and _hook(selector) is not None


def _hook(selector: Selector) -> ast.FunctionDef | None:
    _, _, node = require(selector.tree, "platform")
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == HOOK), None)


def read(selector: Selector, reading: Reading) -> None:
    """Add the winners of a legacy release, and what they leave open."""
    names = backend_names(selector)
    for arch in ARCHITECTURES:
        cls, place = winner(selector, Cell(arch, "auto", 128))
        name = names.get(cls.name) if cls else None
        if cls is None or name is None:
            reading.undecided += 1
            continue
        at, assumes = arch_name(arch), frozenset({"cuda_platform", ASSUMED, "optional_imports_present"})
        when = frozen({"mla": False})
        reading.add(Atom("priority", "priority", frozen({"order": [name]}), when, at, "auto"), place, assumes)
        expected = Atom(
            "legacy", "support", frozen({"verdict": "expected"}), frozen({"backend": name, "mla": False}), at, "auto"
        )
        reading.add(expected, place, assumes)
    _open(selector, reading)


def _open(selector: Selector, reading: Reading) -> None:
    module, _, node = require(selector.tree, "platform")
    place = (module.path, getattr(_hook(selector), "lineno", node.lineno))
    rows: list[tuple[str, dict[str, Any], str]] = [
        ("which MLA backend runs depends on block size and installed packages", {"mla": True}, "a run of this release"),
        (
            "the engine decides elsewhere which backend reads a quantised cache",
            {"mla": False, "kv_cache_dtype": {"not": ["auto"]}},
            "the engine's own check of the cache dtype",
        ),
    ]
    for reason, when, needs in rows:
        said = {"verdict": "unknown", "reason": reason}
        reading.add(Atom("legacy", "support", frozen(said), frozen(when)), place, needs=(needs,))


def winner(selector: Selector, cell: Cell) -> tuple[ClassRef | None, Place]:
    """The backend class that the platform chooses for a GQA layer, and where it chooses."""
    module, _, node = require(selector.tree, "platform")
    run = selector.interpreter(cell)
    run.assumptions.assume(ASSUMED, dict.fromkeys(HEAD_HELPERS, True))
    cls = ClassRef(module, node)
    method = run.scope.class_attribute(cls, HOOK, cls, 0)
    hook = _hook(selector)
    if not isinstance(method, Bound) or hook is None:
        raise ExtractError(f"vllm {selector.tree.release} {module.path}", f"{node.name}.{HOOK}", "no such method")
    axes = run.assumptions.axes
    arguments = {
        "selected_backend": None,
        "head_size": cell.head_size,
        "dtype": axes["dtype"],
        "block_size": 16,
        "kv_cache_dtype": cell.kv_cache_dtype,
        "use_v1": True,
        "use_mla": False,
        "has_sink": cell.sinks,
        "use_sparse": False,
    }
    paths = {path.value for path in run.paths(method, arguments) if isinstance(path.value, str)}
    chosen = _class_at(selector, next(iter(paths))) if len(paths) == 1 else None
    return chosen, (module.path, hook.lineno)


def _class_at(selector: Selector, path: str) -> ClassRef | None:
    module_name, _, name = path.rpartition(".")
    module = selector.tree.module(module_name)
    node = module.last(name, ast.ClassDef) if module else None
    return ClassRef(module, node) if module and node else None


def backend_classes(selector: Selector) -> Iterator[tuple[str, ClassRef]]:
    """Every backend class of the V1 engine with the name it gives itself, engine suffix left out."""
    for path in sorted((selector.tree.root / BACKENDS).rglob("*.py")):
        module = selector.tree.module_at(str(path.relative_to(selector.tree.root)))
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "get_name":
                        last = method.body[-1]
                        if isinstance(last, ast.Return) and isinstance(last.value, ast.Constant):
                            yield str(last.value.value).removesuffix("_VLLM_V1"), ClassRef(module, node)


def backend_names(selector: Selector) -> dict[str, str]:
    """Class name to backend name."""
    return {cls.name: name for name, cls in backend_classes(selector)}


def facts(selector: Selector) -> Iterator[dict[str, Any]]:
    """The winners by architecture and dtype, as one fact."""
    value: dict[str, str] = {}
    place: Place = ("", 0)
    for dtype in FACT_DTYPES:
        for arch in FACT_ARCHITECTURES:
            cls, place = winner(selector, Cell(arch, dtype, 128))
            value[f"sm{arch}.{dtype}"] = cls.name if cls else "undecided"
    yield {"fact": FACT, "value": value, "path": place[0], "line": place[1]}
