"""What one release says, as atoms: one finding, one architecture and cache dtype at most, with its line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nvdash.extract.frames import Place

Frozen = tuple[tuple[str, str], ...]
"""Axes or keys with their values as JSON, in a fixed order: hashable and comparable."""


def frozen(values: Mapping[str, Any]) -> Frozen:
    """A mapping as a hashable value that `thawed` turns back."""
    return tuple((key, json.dumps(value, sort_keys=True)) for key, value in values.items() if value is not None)


def thawed(values: Frozen) -> dict[str, Any]:
    return {key: json.loads(text) for key, text in values}


@dataclass(frozen=True, slots=True)
class Atom:
    """What is said, of which architecture and cache dtype; equal atoms of neighbouring releases form a run."""

    file: str
    """The generated file it belongs to."""
    kind: str
    said: Frozen
    """Verdict, layer, reason and the kind's own keys."""
    when: Frozen
    """The axes other than arch and kv_cache_dtype."""
    arch: str | None = None
    kv_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where one release says an atom, and what the reading took for granted."""

    place: Place
    assumes: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class Reading:
    """Everything that was read of one release."""

    release: str
    atoms: dict[Atom, Evidence] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)
    flashinfer: str | None = None
    flashinfer_place: Place | None = None
    undecided: int = 0

    def add(self, atom: Atom, place: Place, assumes: frozenset[str] = frozenset(), needs: tuple[str, ...] = ()) -> None:
        """Note an atom; the first line that says it is kept."""
        self.atoms.setdefault(atom, Evidence(place, assumes, needs))


def arch_name(arch: int) -> str:
    return f"sm{arch}"
