"""How each kind of expression is evaluated, three-valued."""

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nvdash.extract import operations
from nvdash.extract.frames import Frame, Raised
from nvdash.extract.values import FunctionRef, Native, Super, Unknown, hashable

if TYPE_CHECKING:
    from nvdash.extract.interp import Interpreter

MAX_LOOP = 4096


def _constant(run: "Interpreter", node: ast.Constant, frame: Frame) -> Any:
    return node.value


def _name(run: "Interpreter", node: ast.Name, frame: Frame) -> Any:
    return run.scope.name(node.id, frame)


def _attribute(run: "Interpreter", node: ast.Attribute, frame: Frame) -> Any:
    return run.scope.attribute(run.evaluate(node.value, frame), node.attr, frame.depth)


def _call(run: "Interpreter", node: ast.Call, frame: Frame) -> Any:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and frame.owner is not None:
        return Super(frame.owner, frame.receiver)
    function = run.evaluate(node.func, frame)
    args = _elements(run, node.args, frame)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = run.evaluate(keyword.value, frame)
        if keyword.arg:
            kwargs[keyword.arg] = value
        elif isinstance(value, dict):
            kwargs.update(value)
    if isinstance(args, Unknown):
        return args
    if isinstance(function, Native) and function.name == "append" and args and isinstance(args[0], str):
        place = run.returned.get(frame.depth + 1, (frame.module.path, node.lineno))
        frame.appended.append((args[0], place))
    elif isinstance(function, Native) and function.name in ("getattr", "hasattr", "isinstance", "setattr"):
        return run.scope.reflect(function.name, args, frame)
    elif isinstance(function, Unknown):
        known, value = run.assumptions.call(function.why.rpartition(".")[2], args, run.used)
        return value if known else Unknown(f"{function.why}({', '.join(map(ast.unparse, node.args))})")
    return run.call(function, args, kwargs, frame.depth + 1)


def _elements(run: "Interpreter", nodes: list[ast.expr], frame: Frame) -> Any:
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items = operations.items(run.evaluate(node.value, frame))
            if isinstance(items, Unknown):
                return items
            values.extend(items)
        else:
            values.append(run.evaluate(node, frame))
    return values


def _sequence(run: "Interpreter", node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Any:
    values = _elements(run, node.elts, frame)
    if isinstance(values, Unknown):
        return values
    if isinstance(node, ast.Set):
        return set(values) if all(map(hashable, values)) else Unknown(ast.unparse(node))
    return values if isinstance(node, ast.List) else tuple(values)


def _dict(run: "Interpreter", node: ast.Dict, frame: Frame) -> Any:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        stored = run.evaluate(value, frame)
        if key is None and isinstance(stored, dict):
            made |= stored
            continue
        name = run.evaluate(key, frame) if key else Unknown(ast.unparse(node))
        if not hashable(name):
            return Unknown(ast.unparse(node))
        made[name] = stored
    return made


def _boolean(run: "Interpreter", node: ast.BoolOp, frame: Frame) -> Any:
    stop = isinstance(node.op, ast.Or)
    open_question: Unknown | None = None
    value: Any = None
    for part in node.values:
        try:
            value = run.evaluate(part, frame)
        except Raised:
            if open_question is None:
                raise
            value = Unknown(ast.unparse(part))
        known = operations.truth(value)
        if isinstance(known, Unknown):
            open_question = open_question or known
        elif known is stop:
            return value
    return value if open_question is None else open_question


def _not(run: "Interpreter", node: ast.UnaryOp, frame: Frame) -> Any:
    value = run.evaluate(node.operand, frame)
    return operations.unary(node.op, value)


def _binary(run: "Interpreter", node: ast.BinOp, frame: Frame) -> Any:
    return operations.binary(node.op, run.evaluate(node.left, frame), run.evaluate(node.right, frame))


def _compare(run: "Interpreter", node: ast.Compare, frame: Frame) -> Any:
    left = run.evaluate(node.left, frame)
    verdict: Any = True
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = run.evaluate(comparator, frame)
        holds = operations.compare(op, left, right)
        if holds is False:
            return False
        if isinstance(holds, Unknown) and verdict is True:
            verdict = holds
        left = right
    return verdict


def _conditional(run: "Interpreter", node: ast.IfExp, frame: Frame) -> Any:
    return run.evaluate(node.body if run.truth(run.evaluate(node.test, frame)) else node.orelse, frame)


def _subscript(run: "Interpreter", node: ast.Subscript, frame: Frame) -> Any:
    value = run.evaluate(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        bounds = [run.evaluate(b, frame) if b else None for b in (node.slice.lower, node.slice.upper)]
        index: Any = slice(*bounds) if not any(isinstance(b, Unknown) for b in bounds) else Unknown("slice")
    else:
        index = run.evaluate(node.slice, frame)
    return run.scope.subscript(value, index)


def _joined(run: "Interpreter", node: ast.JoinedStr, frame: Frame) -> Any:
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = run.evaluate(part.value, frame)
            parts.append(operations.shown(value) or "{" + ast.unparse(part.value) + "}")
        else:
            parts.append(str(run.evaluate(part, frame)))
    return "".join(parts)


def _comprehension(run: "Interpreter", node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Any:
    inner = Frame(frame.module, {}, frame.depth, frame.owner, frame.receiver, frame)
    values = list(_rounds(run, node.generators, inner, lambda: run.evaluate(node.elt, inner)))
    if any(isinstance(value, Unknown) and value.why.startswith("iteration over") for value in values):
        return Unknown(ast.unparse(node))
    return set(values) if isinstance(node, ast.SetComp) and all(map(hashable, values)) else values


def _dict_comprehension(run: "Interpreter", node: ast.DictComp, frame: Frame) -> Any:
    inner = Frame(frame.module, {}, frame.depth, frame.owner, frame.receiver, frame)
    pairs = list(
        _rounds(run, node.generators, inner, lambda: (run.evaluate(node.key, inner), run.evaluate(node.value, inner)))
    )
    if any(not isinstance(pair, tuple) or not hashable(pair[0]) for pair in pairs):
        return Unknown(ast.unparse(node))
    return dict(pairs)


def _rounds(
    run: "Interpreter", generators: list[ast.comprehension], frame: Frame, element: Callable[[], Any]
) -> Iterator[Any]:
    if not generators:
        yield element()
        return
    first, rest = generators[0], generators[1:]
    items = operations.items(run.evaluate(first.iter, frame))
    if isinstance(items, Unknown):
        yield Unknown(f"iteration over {items.why}")
        return
    for item in items[:MAX_LOOP]:
        run.scope.assign(first.target, item, frame)
        if all(run.truth(run.evaluate(test, frame)) for test in first.ifs):
            yield from _rounds(run, rest, frame, element)


def _lambda(run: "Interpreter", node: ast.Lambda, frame: Frame) -> Any:
    return FunctionRef(frame.module, node, None, frame)


def _walrus(run: "Interpreter", node: ast.NamedExpr, frame: Frame) -> Any:
    value = run.evaluate(node.value, frame)
    run.scope.assign(node.target, value, frame)
    return value


EXPRESSIONS: dict[type, Callable[..., Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _not,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.JoinedStr: _joined,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
}
