"""A three-valued interpreter for the small part of Python that decides what a release supports.

It runs functions of an unpacked tree on synthetic arguments. What it cannot resolve is `Unknown`,
never true or false: a condition on an unknown value forks the run, so that a verdict holds only
when every fork agrees. Each value carries no provenance; lines of `return` and `raise` are kept.
"""

import ast
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from nvdash.extract import operations
from nvdash.extract.assumptions import Assumptions
from nvdash.extract.expressions import EXPRESSIONS, MAX_LOOP
from nvdash.extract.frames import Frame, Path, Place, Raised, Remembered, Signal, TooDeep
from nvdash.extract.scope import Scope
from nvdash.extract.source import Tree, bound_names
from nvdash.extract.values import Bound, ClassRef, FunctionRef, Instance, Native, Stub, Unknown, hashable

MAX_DEPTH = 40
MAX_PATHS = 64
TRANSPARENT = {
    "staticmethod",
    "classmethod",
    "property",
    "cached_property",
    "cache",
    "lru_cache",
    "abstractmethod",
    "override",
    "with_nvml_context",
    "final",
    "torch.inference_mode",
    "model_validator",
}


class Interpreter:
    """Runs functions of one tree under one set of assumptions."""

    def __init__(self, tree: Tree, assumptions: Assumptions, havoc: bool = False) -> None:
        self.tree, self.assumptions, self.havoc = tree, assumptions, havoc
        self.scope = Scope(self)
        self.used: set[str] = set()
        self.decided: dict[str, bool] = {}
        self.returned: dict[int, Place] = {}
        self._script: list[bool] = []
        self._order: list[str] = []
        self._memo: dict[Any, list[Remembered]] = {}
        self._last_frame: Frame | None = None
        self._opaque: dict[ast.AST, bool] = {}
        self._notes: dict[ast.If, tuple[str, ...]] = {}

    def paths(self, function: FunctionRef | Bound, arguments: dict[str, Any]) -> list[Path]:
        """Every way through one call; a single unknown path when there are too many."""
        outcomes = list(islice(self.each_path(function, arguments), MAX_PATHS + 1))
        if len(outcomes) > MAX_PATHS:
            return [Path(Unknown(f"more than {MAX_PATHS} paths"), None, (), frozenset(self.used), ())]
        return outcomes

    def each_path(self, function: FunctionRef | Bound, arguments: dict[str, Any]) -> Iterator[Path]:
        """The ways through one call, one after another: each run decides the unknown conditions anew."""
        pending: list[list[bool]] = [[]]
        while pending:
            script = pending.pop()
            yield self._one_path(function, arguments, script)
            taken = [self.decided[key] for key in self._order]
            pending.extend([*taken[:i], not taken[i]] for i in range(len(script), len(taken)))

    def _one_path(self, function: FunctionRef | Bound, arguments: dict[str, Any], script: list[bool]) -> Path:
        self._script, self._order, self.decided, self.used = script, [], {}, set()
        value: Any = None
        raised = None
        self._last_frame = None
        if isinstance(function, Bound) and isinstance(function.receiver, Instance):
            function = Bound(function.function, Instance(function.receiver.owner))
        try:
            value = self.call(function, [], dict(arguments), 0)
        except Raised as error:
            raised = error
        except (TooDeep, RecursionError) as error:
            value = Unknown(f"limit reached: {error}")
        appended = tuple(self._last_frame.appended) if self._last_frame else ()
        return Path(value, raised, appended, frozenset(self.used), tuple(self.decided.items()))

    def truth(self, value: Any) -> bool:
        """The truth of a value; an unknown one is decided by this path's script."""
        value = operations.truth(value)
        if not isinstance(value, Unknown):
            return bool(value)
        negated, key = value.why.startswith("not "), value.why.removeprefix("not ")
        if key not in self.decided:
            position = len(self._order)
            self._order.append(key)
            self.decided[key] = self._script[position] if position < len(self._script) else False
        return self.decided[key] != negated

    # Calls

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any], depth: int) -> Any:
        """The value of a call; anything that is not of this tree is unknown unless assumed."""
        if isinstance(function, Native):
            return operations.call_native(function, args, kwargs)
        if isinstance(function, Stub):
            return self.assumptions.stub_call(function, self.used)
        if isinstance(function, ClassRef):
            return self.scope.instantiate(function, args, kwargs, depth)
        receiver = None
        if isinstance(function, Bound):
            function, receiver = function.function, function.receiver
        if not isinstance(function, FunctionRef):
            return Unknown(f"{getattr(function, 'why', function)}()")
        known, value = self.assumptions.call(function.name, args, self.used)
        if known:
            return value
        return self._memoised(function, receiver, args, kwargs, depth)

    def _memoised(
        self, function: FunctionRef, receiver: Any, args: list[Any], kwargs: dict[str, Any], depth: int
    ) -> Any:
        key = None
        if depth and hashable(receiver) and hashable(tuple(args)) and hashable(tuple(kwargs.values())):
            key = (function.node, id(function.closure), receiver, tuple(args), tuple(kwargs.items()))
            for known in self._memo.get(key, ()):
                if all(self.assumptions.axes.get(axis) == value for axis, value in known.axes.items()):
                    return self._recall(known, depth)
        before, used, read = len(self.decided), self.used, self.assumptions.read
        self.used, self.assumptions.read = set(), set()
        try:
            value = self._run(function, receiver, args, kwargs, depth)
        finally:
            inner, axes = self.used, self.assumptions.read
            self.used, self.assumptions.read = used | inner, read | axes
        if key and len(self.decided) == before and not isinstance(value, Instance):
            current = {axis: self.assumptions.axes.get(axis) for axis in axes}
            self._memo.setdefault(key, []).append(
                Remembered(value, self.returned.get(depth), frozenset(inner), current)
            )
        return value

    def _recall(self, known: Remembered, depth: int) -> Any:
        self.used |= known.used
        self.assumptions.read |= known.axes.keys()
        if known.place:
            self.returned[depth] = known.place
        return list(known.value) if isinstance(known.value, list) else known.value

    def _run(self, function: FunctionRef, receiver: Any, args: list[Any], kwargs: dict[str, Any], depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise TooDeep(f"{depth} nested calls")
        node = function.node
        if node not in self._opaque:
            self._opaque[node] = _is_opaque(node) or _is_abstract(function)
        if self._opaque[node]:
            return Unknown(f"{function.name}()")
        frame = Frame(function.module, {}, depth, function.owner, receiver, function.closure)
        self.scope.bind_arguments(function, frame, args, kwargs)
        self.returned.pop(depth, None)
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, frame)
        if depth == 0:
            self._last_frame = frame
        signal = self.execute(node.body, frame)
        return signal.value if signal and signal.kind == "return" else None

    # Statements

    def execute(self, body: list[ast.stmt], frame: Frame) -> Signal | None:
        for node in body:
            handler = STATEMENTS.get(type(node))
            signal = handler(self, node, frame) if handler else None
            if signal is not None:
                return signal
        return None

    def _if(self, node: ast.If, frame: Frame) -> Signal | None:
        if not frame.depth and not self.havoc:
            if node not in self._notes:
                self._notes[node] = _names_of_note(node)
            if self._notes[node]:
                return self._noted(node, self._notes[node], frame)
        return self._branch(node, frame)

    def _branch(self, node: ast.If, frame: Frame) -> Signal | None:
        condition = operations.truth(self.evaluate(node.test, frame))
        if isinstance(condition, Unknown) and self.havoc and not _leaves([*node.body, *node.orelse]):
            self._forget([*node.body, *node.orelse], frame, condition.why)
            return None
        return self.execute(node.body if self.truth(condition) else node.orelse, frame)

    def _noted(self, node: ast.If, names: tuple[str, ...], frame: Frame) -> Signal | None:
        """Run `if …: reasons.append(…)` once per combination of the names it looks at."""
        given = (frame.receiver, self.returned.get(frame.depth + 1), *(frame.names.get(name) for name in names[1:]))
        reasons = frame.names.get(names[0])
        if not isinstance(reasons, list) or not hashable(given):
            return self._branch(node, frame)
        for known in self._memo.get((node, given), ()):
            if all(self.assumptions.axes.get(axis) == value for axis, value in known.axes.items()):
                self.used |= known.used
                reasons.extend(text for text, _ in known.value)
                frame.appended.extend(known.value)
                return None
        before, said, length = len(self.decided), len(frame.appended), len(reasons)
        used, read = self.used, self.assumptions.read
        self.used, self.assumptions.read = set(), set()
        try:
            self._branch(node, frame)
        finally:
            inner, axes = self.used, self.assumptions.read
            self.used, self.assumptions.read = used | inner, read | axes
        appended = frame.appended[said:]
        if len(self.decided) == before and len(reasons) - length == len(appended):
            current = {axis: self.assumptions.axes.get(axis) for axis in axes}
            note = Remembered(appended, None, frozenset(inner), current)
            self._memo.setdefault((node, given), []).append(note)
        return None

    def _forget(self, body: list[ast.stmt], frame: Frame, why: str) -> None:
        """Make everything that a skipped block might have set unknown."""
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.stmt):
                    for name in bound_names(node):
                        frame.names[name] = Unknown(f"{name} after {why}")
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    self.scope.assign(node, Unknown(f"{ast.unparse(node)} after {why}"), frame)

    def _for(self, node: ast.For, frame: Frame) -> Signal | None:
        items = operations.items(self.evaluate(node.iter, frame))
        if isinstance(items, Unknown):
            self._forget([node], frame, items.why)
            return None
        for item in items[:MAX_LOOP]:
            self.scope.assign(node.target, item, frame)
            signal = self.execute(node.body, frame)
            if signal and signal.kind == "break":
                return None
            if signal and signal.kind == "return":
                return signal
        return self.execute(node.orelse, frame)

    def _while(self, node: ast.While, frame: Frame) -> Signal | None:
        for _ in range(MAX_LOOP):
            condition = operations.truth(self.evaluate(node.test, frame))
            if isinstance(condition, Unknown):
                self._forget([node], frame, condition.why)
                return None
            if not condition:
                return None
            signal = self.execute(node.body, frame)
            if signal and signal.kind == "return":
                return signal
            if signal and signal.kind == "break":
                return None
        raise TooDeep(f"{MAX_LOOP} rounds of a loop")

    def _try(self, node: ast.Try, frame: Frame) -> Signal | None:
        try:
            signal = self.execute(node.body, frame)
        except Raised as error:
            for handler in node.handlers:
                names = ast.unparse(handler.type) if handler.type else "Exception"
                if error.kind in names or "Exception" in names:
                    return self.execute(handler.body, frame) or self.execute(node.finalbody, frame)
            raise
        return signal or self.execute(node.orelse, frame) or self.execute(node.finalbody, frame)

    def _with(self, node: ast.With, frame: Frame) -> Signal | None:
        for item in node.items:
            if item.optional_vars is not None:
                self.scope.assign(item.optional_vars, Unknown(ast.unparse(item.context_expr)), frame)
        return self.execute(node.body, frame)

    def _return(self, node: ast.Return, frame: Frame) -> Signal:
        value = self.evaluate(node.value, frame) if node.value else None
        self.returned[frame.depth] = (frame.module.path, node.lineno)
        return Signal("return", value)

    def _raise(self, node: ast.Raise, frame: Frame) -> None:
        call = node.exc
        kind = ast.unparse(call.func if isinstance(call, ast.Call) else call) if call else "Exception"
        parts = call.args[:1] if isinstance(call, ast.Call) else []
        message = self.evaluate(parts[0], frame) if parts else ""
        text = message if isinstance(message, str) else ast.unparse(parts[0]) if parts else ""
        raise Raised(kind, text, (frame.module.path, node.lineno))

    def _assert(self, node: ast.Assert, frame: Frame) -> None:
        condition = operations.truth(self.evaluate(node.test, frame))
        if condition is False:
            message = self.evaluate(node.msg, frame) if node.msg else ast.unparse(node.test)
            raise Raised(
                "AssertionError",
                message if isinstance(message, str) else ast.unparse(node.test),
                (frame.module.path, node.lineno),
            )

    def _assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.scope.assign(target, value, frame)

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.scope.assign(node.target, self.evaluate(node.value, frame), frame)

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        left = self.evaluate(node.target, frame)
        value = operations.binary(node.op, left, self.evaluate(node.value, frame))
        self.scope.assign(node.target, value, frame)

    def _expression(self, node: ast.Expr, frame: Frame) -> None:
        self.evaluate(node.value, frame)

    def _define(self, node: ast.FunctionDef, frame: Frame) -> None:
        frame.names[node.name] = FunctionRef(frame.module, node, None, frame)

    def _class(self, node: ast.ClassDef, frame: Frame) -> None:
        frame.names[node.name] = ClassRef(frame.module, node, frame)

    def _import(self, node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
        for name, value in self.scope.imported(node, frame.module):
            frame.names[name] = value

    # Expressions

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        handler: Callable[..., Any] | None = EXPRESSIONS.get(type(node))
        return handler(self, node, frame) if handler else Unknown(ast.unparse(node))


def _names_of_note(node: ast.If) -> tuple[str, ...]:
    """For `if …: reasons.append(…)` the list's name and the names it looks at; empty for any other statement."""
    only = node.body[0] if len(node.body) == 1 and not node.orelse else None
    call = only.value if isinstance(only, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return ()
    if not isinstance(call.func.value, ast.Name):
        return ()
    seen = [n.id for part in (node.test, *call.args) for n in ast.walk(part) if isinstance(n, ast.Name)]
    return (call.func.value.id, *sorted(set(seen) - {call.func.value.id}))


def _is_opaque(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function cannot be run from its body: a decorator changes it, or it is a generator."""
    if isinstance(node, ast.Lambda):
        return False
    decorators = {ast.unparse(d).split("(")[0].removeprefix("functools.") for d in node.decorator_list}
    changed = any(d not in TRANSPARENT and not d.endswith("setter") for d in decorators)
    return changed or any(isinstance(sub, ast.Yield | ast.YieldFrom) for sub in ast.walk(node))


def _is_abstract(function: FunctionRef) -> bool:
    """Whether this is a platform method that only a concrete platform answers."""
    last = function.node.body[-1] if isinstance(function.node, ast.FunctionDef) else None
    return isinstance(last, ast.Raise) and "/platforms/" in function.module.path and len(ast.unparse(last)) < 30


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a block may end the function: it returns, raises, asserts or leaves a loop."""
    leaving = (ast.Return, ast.Raise, ast.Assert, ast.Break, ast.Continue)
    return any(isinstance(node, leaving) for statement in body for node in ast.walk(statement))


I = Interpreter  # noqa: E741
STATEMENTS: dict[type, Callable[..., Signal | None]] = {
    ast.If: I._if,
    ast.For: I._for,
    ast.While: I._while,
    ast.Try: I._try,
    ast.With: I._with,
    ast.Return: I._return,
    ast.Raise: I._raise,
    ast.Assert: I._assert,
    ast.Assign: I._assign,
    ast.AnnAssign: I._annotated,
    ast.AugAssign: I._augmented,
    ast.Expr: I._expression,
    ast.FunctionDef: I._define,
    ast.ClassDef: I._class,
    ast.Import: I._import,
    ast.ImportFrom: I._import,
    ast.Break: lambda i, n, f: Signal("break"),
    ast.Continue: lambda i, n, f: Signal("continue"),
}
