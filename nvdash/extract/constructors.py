"""What the selector lets through and a constructor then refuses: raises that no path through it avoids."""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from nvdash.extract.condense import GIVEN, SHAPES, Condenser, Spot, projected
from nvdash.extract.context import Cell, constructor_arguments
from nvdash.extract.frames import Place, Raised
from nvdash.extract.interp import MAX_PATHS
from nvdash.extract.selector import Answer, Selector
from nvdash.extract.values import ClassRef, Instance

CHECKED = ("plain", "sinks", "window", "dcp")
RUNNER = "vllm/v1/worker/cp_utils.py"
HOOKS = ("get_builder_cls", "get_impl_cls")
Guard = tuple[str, Place]
"""The words and the place of a raise."""


def guards(condenser: Condenser) -> None:
    """Add a trap for every accepted cell in which a constructor of the backend surely raises."""
    found: dict[tuple[str, Guard], dict[Spot, frozenset[str]]] = {}
    classes = constructed(condenser)
    for shape in CHECKED if classes else ():
        for spot in condenser.spots(shape):
            if condenser.answer(shape, spot).verdict == "yes":
                for guard, used in _raises(condenser, classes, condenser.cell(shape, spot)):
                    if spot not in found.get(("plain", guard), {}):
                        found.setdefault((shape, guard), {})[spot] = used
    for (shape, guard), spots in found.items():
        _add(condenser, shape, guard, spots)


def surely_raises(condenser: Condenser, cell: Cell) -> Place | None:
    """The line at which a constructor of the backend refuses a cell, or None."""
    return next((guard[1] for guard, _ in _raises(condenser, constructed(condenser), cell)), None)


def constructed(condenser: Condenser) -> list[ClassRef]:
    """The metadata builder and implementation of a backend whose constructors can raise at all."""
    return [cls for hook in HOOKS for cls in _constructed(condenser, hook)]


def _constructed(condenser: Condenser, hook: str) -> Iterator[ClassRef]:
    """The class a hook names, when its constructor can raise at all."""
    run = condenser.selector.interpreter(condenser.cell("plain", condenser.spots("plain")[0]))
    if run.scope.find(condenser.backend.cls, hook) is None:
        return
    try:
        value = run.call(run.scope.class_attribute(condenser.backend.cls, hook, condenser.backend.cls, 0), [], {}, 1)
    except Raised:
        return
    if isinstance(value, ClassRef) and any(_can_raise(cls) for cls in run.scope.chain(value)[0]):
        yield value


def _can_raise(cls: ClassRef) -> bool:
    return any(
        isinstance(inner, ast.Raise | ast.Assert)
        for node in cls.node.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for inner in ast.walk(node)
    )


def _raises(condenser: Condenser, classes: Iterable[ClassRef], cell: Cell) -> Iterator[tuple[Guard, frozenset[str]]]:
    run = condenser.selector.interpreter(cell, havoc=True)
    for cls in classes:
        make = run.scope.class_attribute(cls, "__init__", Instance(cls), 0)
        raised: Raised | None = None
        used: frozenset[str] = frozenset()
        for number, path in enumerate(run.each_path(make, constructor_arguments(run.assumptions.axes)), 1):
            if path.raised is None or number > MAX_PATHS or not path.raised.place[1]:
                raised = None
                break
            raised, used = path.raised, used | path.used
        if raised is not None:
            yield (f"{cls.name} raises {raised.kind}{_first_sentence(raised.message)}", raised.place), used


def _first_sentence(message: str) -> str:
    """The start of an error message, without the values that it was given."""
    text = GIVEN.split(re.split(r"\. |;| \(compute capability", message)[0])[0].rstrip(".").replace("{dev}", "this GPU")
    return f": {text}" if text else ""


def _add(condenser: Condenser, shape: str, guard: Guard, spots: dict[Spot, frozenset[str]]) -> None:
    text, place = guard
    groups: dict[str, set[tuple[int, str]]] = {}
    limits: dict[str, Any] = {}
    for pair in {spot[:2] for spot in spots}:
        sizes = [spot[2] for spot in spots if spot[:2] == pair]
        accepted = [
            s[2] for s in condenser.spots(shape) if s[:2] == pair and condenser.answer(shape, s).verdict == "yes"
        ]
        limit = None if sorted(sizes) == sorted(accepted) else sorted(sizes)
        limits[repr(limit)] = limit
        groups.setdefault(repr(limit), set()).add(pair)
    used = frozenset().union(*islice(spots.values(), len(spots)))
    for key, pairs in groups.items():
        when = {**condenser.kind, "head_size": limits[key], **SHAPES[shape]}
        for arch, dtype, _members in projected(pairs, condenser.dtypes):
            said = {"verdict": "trap", "layer": "constructor", "reason": f"the selector accepts it, then {text}"}
            condenser.add(said, when, arch, dtype, place, [Answer("no", (), (), used)])


def decode_context(condenser: Condenser) -> None:
    """Add a trap for DCP that the selector lets through and the runner's own check, after loading, does not."""
    place = _runner_check(condenser.selector)
    accepted = {spot[0]: spot for spot in condenser.spots("dcp") if condenser.answer("dcp", spot).verdict == "yes"}
    if place is None or {_returns_lse(condenser, spot) for spot in accepted.values()} != {False}:
        return
    said = {
        "verdict": "trap",
        "layer": "constructor",
        "reason": "the runner asserts at start-up that decode returns a log-sum-exp for DCP; it returns none",
    }
    condenser.add(said, {**condenser.kind, **SHAPES["dcp"]}, None, None, place, [])


def _runner_check(selector: Selector) -> Place | None:
    """Where the runner asserts that a backend can serve decode context parallelism."""
    for node in ast.walk(selector.tree.module_at(RUNNER).tree) if selector.tree.has(RUNNER) else ():
        if isinstance(node, ast.Assert) and "need_to_return_lse_for_decode" in ast.unparse(node.test):
            return RUNNER, node.lineno
    return None


def _returns_lse(condenser: Condenser, spot: Spot) -> Any:
    run = condenser.selector.interpreter(condenser.cell("dcp", spot))
    if run.scope.find(condenser.backend.cls, "get_impl_cls") is None:
        return None
    try:
        hook = run.scope.class_attribute(condenser.backend.cls, "get_impl_cls", condenser.backend.cls, 0)
        impl = run.call(hook, [], {}, 1)
    except Raised:
        return None
    return run.scope.class_attribute(impl, "can_return_lse_for_decode", impl, 0) if isinstance(impl, ClassRef) else None
