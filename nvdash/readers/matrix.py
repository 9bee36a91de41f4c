"""Reads the support matrix: releases, statements and facts of one framework at a time.

YAML is parsed once per content and kept as JSON, one part per release, so that a verdict reads little.
A later root (an overlay) replaces statements by `id`, releases and facts by name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash.errors import UnknownError, did_you_mean
from nvdash.readers.compiled import compiled, compiled_part
from nvdash.readers.digest import file_name, matrix_digest, matrix_files, matrix_roots
from nvdash.readers.statements import Statement, statement_of

__all__ = ["Matrix", "Release", "Rules", "current", "framework_names", "matrix_digest", "read_axes", "read_facts"]

FRAMEWORK_ALIASES = {"trtllm": "tensorrt-llm", "llamacpp": "llama.cpp"}
LISTED_FRAMEWORKS = ("vllm", "sglang", "tensorrt-llm")
"""Those a selector offers; the others are join keys and comparators."""
FACTS = "facts"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a framework, and what was read of it."""

    name: str
    date: str | None = None
    source: str = "none"
    flashinfer: str | None = None
    flashinfer_evidence: Mapping[str, Any] | None = None

    @property
    def is_read(self) -> bool:
        """Whether anything is known about it."""
        return self.source != "none"


@dataclass(frozen=True, eq=False)
class Rules:
    """What the matrix says about one framework; statements are loaded per release."""

    framework: str
    releases: tuple[Release, ...]
    files: tuple[Path, ...]
    loaded: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """The statements per release that were asked for so far."""

    def release(self, name: str) -> Release | None:
        """The release of exactly this name."""
        return next((release for release in self.releases if release.name == name), None)

    @property
    def read_releases(self) -> tuple[Release, ...]:
        """The releases of which something was read, oldest first."""
        return tuple(release for release in self.releases if release.is_read)

    @property
    def newest(self) -> Release | None:
        """The newest release that was read."""
        return self.read_releases[-1] if self.read_releases else None

    def statements(self, release: str) -> tuple[Statement, ...]:
        """Every statement that holds in this release."""
        if release not in self.loaded:
            self.loaded[release] = self._statements(f"at-{release}")
        return self.loaded[release]

    def all_statements(self) -> tuple[Statement, ...]:
        """Every statement, each once, in file order."""
        return self._statements("all")

    def _statements(self, part: str) -> tuple[Statement, ...]:
        rows = _part(self.framework, self.files, part) or ()
        return tuple(statement_of(row, self.framework) for row in rows)


class Matrix:
    """The rules of every framework, each read when it is first asked for."""

    def __init__(self) -> None:
        self._rules: dict[str, Rules] = {}
        self._axes: dict[str, Any] | None = None

    def rules(self, framework: str) -> Rules:
        """The rules of a framework, by its id or a usual alias."""
        name = FRAMEWORK_ALIASES.get(framework, framework)
        if name not in self._rules:
            self._rules[name] = rules(name)
        return self._rules[name]

    def axes(self) -> dict[str, Any]:
        """The names of every axis, as `axes.yaml` lists them."""
        if self._axes is None:
            self._axes = read_axes()
        return self._axes

    def find_rules(self, framework: str) -> Rules | None:
        """The rules of a framework, or None when the matrix has no folder for it."""
        try:
            return self.rules(framework)
        except UnknownError:
            return None


def current() -> Matrix:
    """The matrix as its files are now; the same object while none of them changes."""
    return _of_digest(matrix_roots(), matrix_digest())


@lru_cache(maxsize=4)
def _of_digest(roots: tuple[Path, ...], digest: str) -> Matrix:
    return Matrix()


def rules(framework: str) -> Rules:
    """The rules of a framework, by its id or a usual alias."""
    name = FRAMEWORK_ALIASES.get(framework, framework)
    files = tuple(path for path in matrix_files(name) if path.parent.name != FACTS)
    if not files:
        names = framework_names()
        raise UnknownError(f"framework {framework!r}", " or ".join(names), "no such folder", did_you_mean(name, names))
    return _rules(name, files, _stamps(files))


def framework_names() -> list[str]:
    """The frameworks that have a folder, the ones of the selector first."""
    folders = {path.parent.name for root in matrix_roots() for path in root.glob("*/releases.yaml")}
    return [name for name in LISTED_FRAMEWORKS if name in folders] + sorted(folders - set(LISTED_FRAMEWORKS))


def read_facts(framework: str, release: str) -> list[dict[str, Any]] | None:
    """What the source of one release declares, as written; None when it has no facts file."""
    name = FRAMEWORK_ALIASES.get(framework, framework)
    wanted = f"{file_name(release)}.yaml"
    files = [path for path in matrix_files(name, FACTS) if path.name == wanted]
    if not files:
        return None

    def build() -> dict[str, Any]:
        from nvdash.readers.matrix_files import facts_of

        return facts_of(files[-1])

    document = compiled("matrix", files[-1:], build)
    return list(document["facts"]) if document["release"] == release else None


def read_axes() -> dict[str, Any]:
    """Every name an axis may take, with its meaning; an overlay adds names."""
    files = [path for root in matrix_roots() if (path := root / "axes.yaml").is_file()]

    def build() -> dict[str, Any]:
        from nvdash.readers.matrix_files import axes_of

        return axes_of(files)

    axes: dict[str, Any] = compiled("matrix", files, build)
    return axes


def _stamps(files: Iterable[Path]) -> tuple[int, ...]:
    return tuple(path.stat().st_mtime_ns for path in files)


@lru_cache(maxsize=32)
def _rules(framework: str, files: tuple[Path, ...], stamps: tuple[int, ...]) -> Rules:
    rows = _part(framework, files, "releases")
    return Rules(framework, tuple(Release(**row) for row in rows), files)


def _part(framework: str, files: tuple[Path, ...], part: str) -> Any:
    def build() -> dict[str, Any]:
        from nvdash.readers.matrix_files import framework_parts

        return framework_parts(framework, files)

    return compiled_part("matrix", framework, list(files), part, build)
