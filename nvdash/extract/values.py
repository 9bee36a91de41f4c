"""What the interpreter computes with: unknowns, and stand-ins for classes, functions and objects."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nvdash.extract.source import Module


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value the source alone does not decide; `why` names the expression that would."""

    why: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A constant of a foreign library that is only ever compared, such as torch.bfloat16."""

    name: str


@dataclass(frozen=True, order=True, slots=True)
class Capability:
    """A CUDA compute capability."""

    major: int
    minor: int

    def to_int(self) -> int:
        return self.major * 10 + self.minor

    def as_version_str(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, eq=False, slots=True)
class ClassRef:
    """A class statement of the tree (or a class a factory makes), with where it was found."""

    module: Module
    node: ast.ClassDef
    closure: Any = None

    @property
    def name(self) -> str:
        return self.node.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassRef) and self.node is other.node and self.closure is other.closure

    def __hash__(self) -> int:
        return id(self.node)


@dataclass(frozen=True, eq=False, slots=True)
class FunctionRef:
    """A function of the tree; `owner` is the class that defines it."""

    module: Module
    node: ast.FunctionDef | ast.Lambda
    owner: ClassRef | None = None
    closure: Any = None

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "<lambda>"


@dataclass(frozen=True, eq=False, slots=True)
class Bound:
    """A method together with the class or object it was asked for on."""

    function: FunctionRef
    receiver: Any


@dataclass(frozen=True, slots=True)
class Super:
    """What `super()` means inside one method."""

    owner: ClassRef
    receiver: Any


@dataclass(frozen=True, slots=True)
class EnumMember:
    """One member of an enum of the tree."""

    owner: ClassRef
    name: str
    value: Any
    compares_as_value: bool


@dataclass(eq=False, slots=True)
class Instance:
    """An object of a class of the tree, with the attributes that code has set so far."""

    owner: ClassRef
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stub:
    """An object known only through the assumption table, addressed by a dotted path."""

    path: str


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the tree used as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Native:
    """A Python builtin or a method of a plain value that may be called for real."""

    function: Callable[..., Any]
    name: str


_IMMUTABLE = frozenset(
    {str, int, float, bool, type(None), bytes, Symbol, Capability, ClassRef, EnumMember, Stub, ModuleRef}
)


def hashable(value: Any) -> bool:
    """Whether a value may stand in a memo key."""
    kind = type(value)
    if kind in _IMMUTABLE:
        return True
    if kind is tuple or kind is frozenset:
        return all(map(hashable, value))
    return kind not in (list, dict, set, Instance, Unknown)
