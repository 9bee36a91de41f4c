"""Asks the selection code of one release about every cell of the cross product."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from nvdash.extract.context import ARCHITECTURES, GQA_HEAD_SIZES, MLA_HEAD_SIZES, PLAIN_HEAD, Cell
from nvdash.extract.selector import Answer, Selector
from nvdash.extract.source import ExtractError
from nvdash.extract.values import ClassRef

FLAGS: dict[str, dict[str, object]] = {
    "window": {"window": True},
    "dcp": {"dcp": 2},
    "non_causal": {"causal": False},
    "dcp_non_causal": {"dcp": 2, "causal": False},
}
"""Shapes beyond head size and sinks; the base class checks each on its own, so one head size shows it."""

EXPLICIT_ONLY = ("FLASH_ATTN_DIFFKV", "TRITON_ATTN_DIFFKV", "HPC_ATTN")


@dataclass(slots=True)
class Backend:
    """One backend of a release: its class, its kind of attention and every answer about it."""

    name: str
    cls: ClassRef
    mla: bool
    sparse: bool
    answers: dict[Cell, Answer] = field(default_factory=dict)
    mismatch: dict[str, Answer] = field(default_factory=dict)
    """Answers for a layer of the wrong kind, by the axis that is wrong (mla, sparse)."""

    @property
    def heads(self) -> tuple[int, ...]:
        return MLA_HEAD_SIZES if self.mla else GQA_HEAD_SIZES


def candidate_names(selector: Selector, dtypes: list[str]) -> list[str]:
    """Every backend that some priority list of the release names, in order of first mention."""
    names: dict[str, None] = {}
    for mla in (False, True):
        for arch in ARCHITECTURES:
            for dtype in dtypes:
                for cell in priority_cells(arch, dtype, mla):
                    for heads in (16, 128):
                        order, _ = selector.priorities(cell, heads)
                        names |= dict.fromkeys(order or [])
    registered = selector.backends()
    names |= dict.fromkeys(name for name in EXPLICIT_ONLY if name in registered)
    return list(names)


def priority_cells(arch: int, dtype: str, mla: bool) -> Iterator[Cell]:
    """The cells over which a priority list may differ for one architecture and dtype."""
    for head_size in (512, 576) if mla else (128,):
        for causal in (True, False):
            yield Cell(arch, dtype, head_size, mla=mla, causal=causal)


def sweep(selector: Selector, dtypes: list[str]) -> list[Backend]:
    """Every candidate backend with its answers."""
    backends = []
    for name in candidate_names(selector, dtypes):
        cls = selector.backend_class(name)
        if cls is not None:
            backends.append(_swept(selector, name, cls, dtypes))
    return backends


def _swept(selector: Selector, name: str, cls: ClassRef, dtypes: list[str]) -> Backend:
    backend = Backend(name, cls, _flag(selector, cls, "is_mla"), _flag(selector, cls, "is_sparse"))
    for cell in cells(backend, dtypes):
        backend.answers[cell] = selector.ask(cls, cell)
    plain = Cell(90, "auto", PLAIN_HEAD[backend.mla], backend.mla, backend.sparse)
    wrong = {"mla": replace(plain, mla=not backend.mla, sparse=False)}
    if backend.mla:
        wrong["sparse"] = replace(plain, sparse=not backend.sparse)
    backend.mismatch = {axis: selector.ask(cls, cell) for axis, cell in wrong.items()}
    return backend


def cells(backend: Backend, dtypes: list[str]) -> Iterator[Cell]:
    """The cells a backend is asked about: every head size with and without sinks, the other shapes at one size."""
    for arch in ARCHITECTURES:
        for dtype in dtypes:
            for size in backend.heads:
                base = Cell(arch, dtype, size, backend.mla, backend.sparse)
                yield base
                yield replace(base, sinks=True)
            base = Cell(arch, dtype, PLAIN_HEAD[backend.mla], backend.mla, backend.sparse)
            for change in FLAGS.values():
                yield replace(base, **change)  # type: ignore[arg-type]


def _flag(selector: Selector, cls: ClassRef, name: str) -> bool:
    run = selector.interpreter(Cell(90, "auto", 128))
    if run.scope.find(cls, name) is None:
        return False
    value = run.call(run.scope.class_attribute(cls, name, cls, 0), [], {}, 1)
    if not isinstance(value, bool):
        raise ExtractError(
            f"vllm {selector.tree.release} {cls.module.path}:{cls.node.lineno}",
            f"{cls.name}.{name}() to be true or false",
            "neither can be read",
        )
    return value


def cache_dtypes(selector: Selector) -> tuple[list[str], str, int]:
    """The values of --kv-cache-dtype in a release, with the place of the list."""
    from nvdash.extract.locate import require

    module, name, node = require(selector.tree, "cache_dtypes")
    value = node.value
    if isinstance(value, ast.Subscript):
        elements = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        values = [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        if len(values) == len(elements):
            return values, module.path, node.lineno
    raise ExtractError(
        f"vllm {selector.tree.release} {module.path}:{node.lineno}", f"{name} = Literal[...]", ast.unparse(node)[:80]
    )
