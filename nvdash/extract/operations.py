"""Three-valued operators on interpreter values: a result is known only when its operands decide it."""

import ast
import operator
from collections.abc import Callable, ItemsView, KeysView, ValuesView
from typing import Any

from nvdash.extract.values import (
    Bound,
    Capability,
    ClassRef,
    EnumMember,
    FunctionRef,
    Instance,
    ModuleRef,
    Native,
    Stub,
    Symbol,
    Unknown,
)

ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
ORDER: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
OBJECTS = (ClassRef, FunctionRef, Bound, Instance, ModuleRef, Native)
PLAIN = (bool, int, float, str, bytes, type(None), list, tuple, dict, set, frozenset)
METHODS = {
    str: {
        "startswith",
        "endswith",
        "lower",
        "upper",
        "strip",
        "split",
        "removeprefix",
        "removesuffix",
        "replace",
        "join",
        "format",
        "isdigit",
        "partition",
        "rpartition",
        "rsplit",
        "title",
    },
    list: {"append", "extend", "insert", "index", "copy", "count", "remove", "pop"},
    dict: {"get", "items", "keys", "values", "update", "copy", "setdefault", "pop"},
    tuple: {"index", "count"},
    set: {"add", "union", "issubset", "intersection", "update", "difference"},
    frozenset: {"union", "issubset", "intersection", "difference"},
    int: {"bit_length"},
    float: {"is_integer"},
    Capability: {"to_int", "as_version_str"},
}


def truth(value: Any) -> Any:
    """True, False or Unknown."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, PLAIN):
        return bool(value)
    if isinstance(value, EnumMember):
        return truth(value.value) if value.compares_as_value else True
    if isinstance(value, Symbol):
        return Unknown(value.name)
    return True


def plain(value: Any) -> Any:
    """The Python value an enum member of a str or int enum stands for."""
    return value.value if isinstance(value, EnumMember) and value.compares_as_value else value


def equal(left: Any, right: Any) -> Any:
    """Whether two values are equal; Unknown when the source does not say."""
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown(f"{shown(left) or _name(left)} == {shown(right) or _name(right)}")
    if isinstance(left, EnumMember) and isinstance(right, EnumMember):
        return left.owner == right.owner and left.name == right.name
    left, right = plain(left), plain(right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        pairs = [equal(a, b) for a, b in zip(left, right, strict=True)]
        return False if False in pairs else next((p for p in pairs if isinstance(p, Unknown)), True)
    if isinstance(left, Stub) or isinstance(right, Stub):
        return left == right or Unknown(f"{_name(left)} == {_name(right)}")
    if isinstance(left, Capability) != isinstance(right, Capability):
        return False
    return bool(left == right) if not isinstance(left, OBJECTS) else left is right or left == right


def contains(item: Any, container: Any) -> Any:
    """Whether a container holds an item; Unknown when one of its members might be it."""
    if isinstance(container, str) and isinstance(plain(item), str):
        return plain(item) in container
    members = items(container)
    if isinstance(members, Unknown):
        return Unknown(f"{_name(item)} in {members.why}")
    verdict: Any = False
    for member in members:
        same = equal(item, member)
        if same is True:
            return True
        verdict = same if isinstance(same, Unknown) else verdict
    return verdict


def identical(left: Any, right: Any) -> Any:
    """What `is` says, for the values that source compares with it (None, True, False, enum members)."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Unknown):
            return Unknown(f"{one.why} is {shown(other) or _name(other)}")
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return equal(left, right)


def compare(op: ast.cmpop, left: Any, right: Any) -> Any:
    """One comparison, three-valued."""
    if isinstance(op, ast.Eq):
        return equal(left, right)
    if isinstance(op, ast.NotEq):
        return negated(equal(left, right))
    if isinstance(op, ast.In | ast.NotIn):
        inside = contains(left, right)
        return inside if isinstance(op, ast.In) else negated(inside)
    if isinstance(op, ast.Is | ast.IsNot):
        same = identical(left, right)
        return same if isinstance(op, ast.Is) else negated(same)
    left, right = plain(left), plain(right)
    try:
        return ORDER[type(op)](left, right)
    except TypeError:
        return Unknown(ast.unparse(ast.Compare(_word(left), [op], [_word(right)])))


def negated(value: Any) -> Any:
    """The opposite; an unknown keeps its key, so that a path decides both the same way."""
    if isinstance(value, Unknown):
        why = value.why
        return Unknown(why.removeprefix("not ") if why.startswith("not ") else f"not {why}")
    return not value


def unary(op: ast.unaryop, value: Any) -> Any:
    if isinstance(op, ast.Not):
        return negated(truth(value))
    value = plain(value)
    if isinstance(value, int | float):
        return -value if isinstance(op, ast.USub) else +value if isinstance(op, ast.UAdd) else ~int(value)
    return Unknown(ast.unparse(ast.UnaryOp(op, _word(value))))


def binary(op: ast.operator, left: Any, right: Any) -> Any:
    left, right = plain(left), plain(right)
    if isinstance(left, PLAIN) and isinstance(right, PLAIN):
        try:
            return ARITHMETIC[type(op)](left, right)
        except (TypeError, ValueError, ZeroDivisionError, KeyError):
            pass
    return Unknown(f"({ast.unparse(ast.BinOp(_word(left), op, _word(right)))})")


def items(value: Any) -> list[Any] | Unknown:
    """The members of a known container, in order."""
    if isinstance(value, list | tuple | set | frozenset | dict | range | KeysView | ValuesView | ItemsView):
        members: list[Any] = [*value]
        return sorted(members, key=repr) if isinstance(value, set | frozenset) else members
    if isinstance(value, Unknown):
        return value
    return Unknown(f"members of {_name(value)}")


def call_native(native: Native, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a builtin or a plain method; unknown arguments make the answer unknown, except when stored."""
    stores = native.name in ("append", "insert", "add", "extend", "update", "setdefault", "list", "tuple", "dict")
    every = [*args, *kwargs.values()]
    if not stores and any(isinstance(a, Unknown) or (isinstance(a, list | tuple) and _has_unknown(a)) for a in every):
        return Unknown(f"{native.name}({', '.join(_name(a) for a in args)})")
    try:
        return native.function(*[plain(a) for a in args], **kwargs)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return Unknown(f"{native.name}({', '.join(_name(a) for a in args)})")


def _has_unknown(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(isinstance(v, Unknown) for v in values)


def method(value: Any, name: str) -> Native | None:
    """A method of a plain value that may be run for real."""
    for kind, names in METHODS.items():
        if isinstance(value, kind) and name in names:
            return Native(getattr(value, name), name)
    return None


def shown(value: Any) -> str:
    """How a value appears inside a message, or nothing when it is not known."""
    value = plain(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return str(value)
    if isinstance(value, Capability):
        return value.as_version_str()
    if isinstance(value, list | tuple) and not _has_unknown(value):
        return f"[{', '.join(shown(v) or _name(v) for v in value)}]"
    return ""


def _word(value: Any) -> ast.Name:
    """A value's words as an operand, so that an operation reads as source does."""
    return ast.Name(_name(value))


def _name(value: Any) -> str:
    if isinstance(value, Unknown):
        return value.why
    for attribute in ("name", "path"):
        if hasattr(value, attribute):
            return str(getattr(value, attribute))
    return repr(value) if isinstance(value, PLAIN) else type(value).__name__
