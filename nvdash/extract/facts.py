"""What the source of one release declares, by name: lists, defaults, orders and verdicts, each with its line."""

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from nvdash.extract.condense import Condenser
from nvdash.extract.constructors import surely_raises
from nvdash.extract.context import ARCHITECTURES, PLAIN_HEAD, Cell
from nvdash.extract.frames import Place, Raised
from nvdash.extract.locate import find, require
from nvdash.extract.selector import Selector, method_line
from nvdash.extract.source import ExtractError
from nvdash.extract.values import ClassRef

PRIORITY_DTYPES = ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_ds_mla", "nvfp4", "nvfp4_ds_mla", "int8_per_token_head")
PRIORITY_HEADS = 32
VERDICT_SHAPES: dict[str, dict[str, Any]] = {
    "d128": {},
    "d64": {"head_size": 64},
    "dcp2": {"dcp": 2},
    "sinks": {"sinks": True},
}
VERDICT_DTYPES = ("auto", "bfloat16", "fp8", "fp8_e5m2", "int8_per_token_head", "nvfp4", "nvfp4_4over6", "nvfp4_ds_mla")
Row = dict[str, Any]


def row(fact: str, value: Any, place: Place) -> Row:
    """One fact as a facts file holds it."""
    return {"fact": fact, "value": value, "path": place[0], "line": place[1]}


def registry(selector: Selector) -> Iterator[Row]:
    """How many backends the registry names with a class path."""
    module, _, node = require(selector.tree, "registry")
    yield row(
        "attention_backend_registry.members_with_class_path", len(selector.backends()), (module.path, node.lineno)
    )


def declared(selector: Selector, names: Iterable[str]) -> Iterator[Row]:
    """Head sizes, declared cache dtypes and architectures of every shipped backend."""
    for name in names:
        try:
            cls = selector.backend_class(name)
        except ExtractError:
            continue
        if cls is not None:
            yield from declared_of(selector, name, cls)


def declared_of(selector: Selector, name: str, cls: ClassRef) -> Iterator[Row]:
    """The facts of one backend class."""
    run = selector.interpreter(Cell(90, "auto", 128))
    sizes = called(selector, cls, "get_supported_head_sizes", Cell(90, "auto", 128), [])
    place = method_line(run, cls, "get_supported_head_sizes")
    if isinstance(sizes, list) and all(isinstance(s, int) for s in sizes) and place:
        yield row(f"{name}.head_sizes", sizes or "any", place)
    listed = run.scope.find(cls, "supported_kv_cache_dtypes")
    if listed is not None:
        values = run.scope.class_attribute(cls, "supported_kv_cache_dtypes", cls, 0)
        if isinstance(values, list) and all(isinstance(v, str) for v in values):
            yield row(f"{name}.supported_kv_cache_dtypes(declared)", values, (listed[0].module.path, listed[1].lineno))
    yield from _capabilities(selector, name, cls)


def _capabilities(selector: Selector, name: str, cls: ClassRef) -> Iterator[Row]:
    place = method_line(selector.interpreter(Cell(90, "auto", 128)), cls, "supports_compute_capability")
    if place is None:
        return
    accepted = []
    for arch in ARCHITECTURES:
        cell = Cell(arch, "auto", 128)
        verdict = called(
            selector,
            cls,
            "supports_compute_capability",
            cell,
            [selector.interpreter(cell).assumptions.axes["capability"]],
        )
        if not isinstance(verdict, bool):
            return
        accepted += [arch] if verdict else []
    asked = ",".join(map(str, ARCHITECTURES))
    yield row(f"{name}.compute_capability(of {asked})", accepted, place)


def called(selector: Selector, cls: ClassRef, method: str, cell: Cell, args: list[Any]) -> Any:
    """What a class method returns in a cell; None when it raises."""
    run = selector.interpreter(cell)
    if run.scope.find(cls, method) is None:
        return None
    try:
        return run.call(run.scope.class_attribute(cls, method, cls, 0), args, {}, 1)
    except Raised:
        return None


def priorities(selector: Selector, dtypes: list[str]) -> Iterator[Row]:
    """The priority list per architecture, kind of attention and cache dtype, for 32 query heads."""
    for arch in ARCHITECTURES:
        for kind, mla in (("gqa", False), ("mla", True)):
            for dtype in (d for d in PRIORITY_DTYPES if d in dtypes):
                order, place = selector.priorities(Cell(arch, dtype, PLAIN_HEAD[mla], mla=mla), PRIORITY_HEADS)
                if order is not None:
                    yield row(f"priority.sm{arch}.{kind}.kv_{dtype}", order, place)


def verdicts(selector: Selector, condensers: dict[str, Condenser], dtypes: list[str]) -> Iterator[Row]:
    """Per cache dtype and shape: the first backend that accepts, and whether its constructors then raise."""
    flashinfer = condensers.get("FLASHINFER")
    if flashinfer is None:
        return
    run = selector.interpreter(Cell(90, "auto", 128))
    place = method_line(run, flashinfer.backend.cls, "supports_kv_cache_dtype")
    for dtype in (d for d in VERDICT_DTYPES if d in dtypes):
        value = {shape: _winners(selector, condensers, dtype, change) for shape, change in VERDICT_SHAPES.items()}
        if place and all(value.values()):
            yield row(f"{dtype}.verdict(selector, then constructor)", value, place)


def _winners(
    selector: Selector, condensers: dict[str, Condenser], dtype: str, change: dict[str, Any]
) -> dict[str, list[int]]:
    winners: dict[str, list[int]] = {}
    for arch in ARCHITECTURES:
        cell = Cell(**{"arch": arch, "kv_cache_dtype": dtype, "head_size": 128, **change})
        winners.setdefault(_winner(selector, condensers, cell), []).append(arch)
    return winners


def _winner(selector: Selector, condensers: dict[str, Condenser], cell: Cell) -> str:
    order, _ = selector.priorities(cell, PRIORITY_HEADS)
    for name in order or []:
        condenser = condensers.get(name)
        answer = condenser.backend.answers.get(cell) if condenser else None
        if condenser is None or answer is None or answer.verdict == "unknown":
            return "undecided"
        if answer.verdict == "yes":
            guard = surely_raises(condenser, cell)
            return f"{name} then raises {guard[0]}:{guard[1]}" if guard else name
    return "rejected_by_selector"


def memory_defaults(selector: Selector) -> Iterator[Row]:
    """Defaults of the cache configuration that move capacity."""
    module, _, node = require(selector.tree, "cache_config")
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "gpu_memory_utilization":
            yield row("gpu_memory_utilization.default", field_default(statement.value), (module.path, statement.lineno))


def field_default(value: ast.expr | None) -> Any:
    """The default of a dataclass field, also when it stands inside Field(default=…)."""
    if isinstance(value, ast.Call):
        inner = [k.value for k in value.keywords if k.arg == "default"] or value.args[:1]
        return ast.literal_eval(inner[0]) if inner else None
    return ast.literal_eval(value) if value is not None else None


def quantization(selector: Selector) -> Iterator[Row]:
    """The minimum capability of every quantisation method."""
    for name, cls in quantization_classes(selector).items():
        run = selector.interpreter(Cell(90, "auto", 128))
        place = method_line(run, cls, "get_min_capability")
        value = called(selector, cls, "get_min_capability", Cell(90, "auto", 128), [])
        if isinstance(value, int) and place:
            yield row(f"quant.{name}.min_capability", value, place)


def quantization_classes(selector: Selector) -> dict[str, ClassRef]:
    """Method name to config class, as `get_quantization_config` maps them."""
    from nvdash.extract.frames import Frame

    found = find(selector.tree, "quantization_methods")
    if found is None:
        return {}
    module, _, node = found
    run = selector.interpreter(Cell(90, "auto", 128))
    frame = Frame(module, {}, 1)
    run.execute([s for s in node.body if isinstance(s, ast.Import | ast.ImportFrom)], frame)
    classes: dict[str, ClassRef] = {}
    for mapping in (d for s in node.body for d in ast.walk(s) if isinstance(d, ast.Dict)):
        for key, value in zip(mapping.keys, mapping.values, strict=True):
            cls = run.evaluate(value, frame)
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(cls, ClassRef):
                classes[key.value] = cls
    return classes
