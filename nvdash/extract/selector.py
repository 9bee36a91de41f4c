"""Runs a release's own backend selection: its priority list and each backend's `validate_configuration`."""

import ast
from dataclasses import dataclass
from typing import Any

from nvdash.extract.assumptions import Assumptions
from nvdash.extract.context import Cell, axes_of, priority_arguments, selector_arguments
from nvdash.extract.frames import Path, Place
from nvdash.extract.interp import Interpreter
from nvdash.extract.locate import find, require
from nvdash.extract.source import ExtractError, Tree
from nvdash.extract.values import Bound, ClassRef, EnumMember, FunctionRef, Instance, Unknown

Reason = tuple[str, Place]
DTYPE_REASON = "kv_cache_dtype not supported"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the selector says of one backend in one cell."""

    verdict: str
    """yes, no or unknown."""
    reasons: tuple[Reason, ...]
    """For `no`: every reason that holds on each path. For `unknown`: those that hold on some."""
    needs: tuple[str, ...]
    """The conditions that would decide an unknown answer."""
    used: frozenset[str]
    place: Place | None = None
    """For `yes`: the method that accepted the cache dtype."""


class Selector:
    """The selection code of one release, ready to be asked about cells."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.assumptions = Assumptions({})
        self._interpreters: dict[int, Interpreter] = {}
        self._quant_modes: dict[str, Any] = {}
        module, _, node = require(tree, "platform")
        self._platform: ClassRef = ClassRef(module, node)

    def interpreter(self, cell: Cell, havoc: bool = False) -> Interpreter:
        """The interpreter for a cell's architecture, moved to that cell."""
        key = cell.arch * 2 + havoc
        if key not in self._interpreters:
            self._interpreters[key] = Interpreter(self.tree, Assumptions({}), havoc)
        run = self._interpreters[key]
        axes = axes_of(cell, Instance(self._platform), None)
        run.assumptions.axes = axes
        axes["kv_quant_mode"] = self._quant_mode(run, cell.kv_cache_dtype)
        return run

    def _quant_mode(self, run: Interpreter, kv_cache_dtype: str) -> Any:
        if kv_cache_dtype not in self._quant_modes:
            found = find(self.tree, "kv_quant_mode")
            asked = FunctionRef(found[0], found[2]) if found else Unknown("kv_quant_mode")
            self._quant_modes[kv_cache_dtype] = run.call(asked, [kv_cache_dtype], {}, 1)
        return self._quant_modes[kv_cache_dtype]

    def backends(self) -> dict[str, str]:
        """The registry: backend name to dotted class path, members without one left out."""
        _, _, node = require(self.tree, "registry")
        members = {}
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                try:
                    path = ast.literal_eval(statement.value)
                except ValueError:
                    continue
                if isinstance(path, str) and "." in path:
                    members[statement.targets[0].id] = path
        return members

    def backend_class(self, name: str) -> ClassRef | None:
        """The class of a registered backend; None when its module is not shipped."""
        path = self.backends().get(name)
        if path is None:
            raise ExtractError(f"vllm {self.tree.release} registry", "a registered backend", f"no {name}")
        module_name, _, class_name = path.rpartition(".")
        module = self.tree.module(module_name)
        if module is None:
            return None
        value = self.interpreter(Cell(90, "auto", 128)).scope.module_name(module, class_name)
        if isinstance(value, ClassRef):
            return value
        if class_name in module.names:
            return None
        raise ExtractError(
            f"vllm {self.tree.release} {module.path}",
            f"class {class_name} of backend {name}",
            "no such name",
            "the release renamed it; the registry and the module disagree",
        )

    def priorities(self, cell: Cell, num_heads: int) -> tuple[list[str] | None, Place]:
        """The backends the release tries for a cell, in order; None when the source does not decide."""
        module, _, node = require(self.tree, "priorities")
        run = self.interpreter(cell)
        arguments = priority_arguments(run.assumptions.axes, num_heads)
        outcomes = [p.value for p in run.paths(FunctionRef(module, node), arguments)]
        first = outcomes[0]
        if len(outcomes) != 1 or not isinstance(first, list) or not all(isinstance(m, EnumMember) for m in first):
            return None, (module.path, node.lineno)
        return [member.name for member in first], (module.path, node.lineno)

    def ask(self, backend: ClassRef, cell: Cell) -> Answer:
        """What `validate_configuration` of a backend says about a cell."""
        run = self.interpreter(cell)
        method = run.scope.class_attribute(backend, "validate_configuration", backend, 0)
        if not isinstance(method, Bound):
            raise ExtractError(
                f"vllm {self.tree.release} {backend.module.path}:{backend.node.lineno}",
                f"{backend.name}.validate_configuration",
                "no such method",
                "the release renamed the hook: map it in nvdash/extract/selector.py",
            )
        paths = run.paths(method, selector_arguments(run.assumptions.axes))
        return merged(paths, method_line(run, backend, "supports_kv_cache_dtype"))


def method_line(run: Interpreter, backend: ClassRef, name: str) -> Place | None:
    """Where the effective method of a class stands."""
    found = run.scope.find(backend, name)
    return (found[0].module.path, found[1].lineno) if found else None


def merged(paths: list[Path], place: Place | None) -> Answer:
    """One answer out of every path: yes or no only when all agree; `place` is the method that judges cache dtypes."""
    used = frozenset().union(*(p.used for p in paths))
    per_path: list[dict[str, Place] | None] = []
    for path in paths:
        if path.raised:
            per_path.append({f"{path.raised.kind}: {path.raised.message}": path.raised.place})
        elif isinstance(path.value, list):
            per_path.append(_reasons(path, place))
        else:
            per_path.append(None)
    needs = tuple(
        sorted(
            {key for path in paths for key, _ in path.decided}
            | {p.value.why for p in paths if isinstance(p.value, Unknown)}
        )
    )
    known = [reasons for reasons in per_path if reasons is not None]
    if len(known) == len(per_path) and all(not reasons for reasons in known):
        return Answer("yes", (), (), used, place)
    certain = set.intersection(*(set(r) for r in known)) if known and len(known) == len(per_path) else set()
    if certain:
        first = known[0]
        return Answer("no", tuple((text, first[text]) for text in first if text in certain), (), used)
    maybe = {text: line for reasons in known for text, line in reasons.items()}
    return Answer("unknown", tuple(maybe.items()), needs, used, place)


def _reasons(path: Path, place: Place | None) -> dict[str, Place]:
    """The reasons of one path; a cache dtype is refused by the whole method, which also says what is accepted."""
    lines = dict(path.appended)
    if place is not None:
        lines[DTYPE_REASON] = place
    return {
        text if isinstance(text, str) else _why(text): lines.get(text, ("", 0)) if isinstance(text, str) else ("", 0)
        for text in path.value
    }


def _why(value: Any) -> str:
    return value.why if isinstance(value, Unknown) else str(value)
