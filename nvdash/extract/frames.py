"""What the interpreter keeps while it runs: frames, signals, raised exceptions, outcomes of a path."""

from dataclasses import dataclass, field
from typing import Any

from nvdash.extract.source import Module
from nvdash.extract.values import ClassRef

Place = tuple[str, int]


class Raised(Exception):
    """An exception that the interpreted source raises, with the place of the raise."""

    def __init__(self, kind: str, message: str, place: Place) -> None:
        super().__init__(kind, message, place)
        self.kind, self.message, self.place = kind, message, place


class TooDeep(Exception):
    """The run went past a limit; its outcome is unknown."""


@dataclass(slots=True)
class Frame:
    """The names of one running function."""

    module: Module
    names: dict[str, Any]
    depth: int
    owner: ClassRef | None = None
    receiver: Any = None
    outer: "Frame | None" = None
    appended: list[tuple[str, Place]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Path:
    """One way through the source: what came out, what it assumed, which unknowns it decided."""

    value: Any
    raised: Raised | None
    appended: tuple[tuple[str, Place], ...]
    used: frozenset[str]
    decided: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a call returned, from which line, and the assumptions and axes it rested on."""

    value: Any
    place: Place | None
    used: frozenset[str]
    axes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Signal:
    kind: str
    value: Any = None
