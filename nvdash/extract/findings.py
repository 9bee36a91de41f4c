"""Facts read from one release's source, each with its place, and the small searches that find them.

A search returns None where a release has no such thing; a fact that is not found is left out, never guessed.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nvdash.extract.source import Tree


@dataclass(frozen=True, slots=True)
class Fact:
    """One named value and the line that states it."""

    fact: str
    value: Any
    path: str
    line: int | None

    def as_row(self) -> dict[str, Any]:
        """The fact as a row of a facts file."""
        return {"fact": self.fact, "value": self.value, "path": self.path, "line": self.line}


Found = tuple[Any, str, int | None]
"""A value, the path and the line; what a finder returns."""

Finder = Callable[[Tree], Found | None]


def collect(tree: Tree, families: Iterable[tuple[str, Finder]]) -> list[Fact]:
    """The facts of every family that this release declares, in the families' order."""
    facts = []
    for name, finder in families:
        found = finder(tree)
        if found is not None:
            facts.append(Fact(name, *found))
    return facts


def first_line(tree: Tree, paths: Iterable[str], pattern: str) -> tuple[str, int, re.Match[str]] | None:
    """The first line that matches, over the paths that this release has, in their order."""
    compiled = re.compile(pattern)
    for path in paths:
        if not tree.has(path):
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            match = compiled.search(line)
            if match:
                return path, number, match
    return None


def says(paths: Iterable[str], pattern: str, value: Any) -> Finder:
    """A finder for a statement of the source that a person read once: the pattern proves that it still stands."""

    def find(tree: Tree) -> Found | None:
        hit = first_line(tree, paths, pattern)
        return (value, hit[0], hit[1]) if hit else None

    return find


@lru_cache(maxsize=8)
def strings(module: ast.Module) -> tuple[tuple[int, str, ast.expr], ...]:
    """Every string of a module, f-strings in their written form, with its line; inner parts are not repeated."""
    inner = {
        id(part)
        for node in ast.walk(module)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    texts = []
    for node in ast.walk(module):
        if id(node) not in inner and isinstance(node, ast.JoinedStr | ast.Constant):
            text = written(node)
            if text is not None:
                texts.append((node.lineno, text, node))
    return tuple(sorted(texts, key=lambda item: item[0]))


def written(node: ast.expr) -> str | None:
    """A string expression as it is written, with `{…}` for what it formats in; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(part) for part in node.values)
    return None


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        spec = f":{written(node.format_spec)}" if node.format_spec is not None else ""
        return "{" + ast.unparse(node.value) + spec + "}"
    return written(node) or ""


def message(tree: Tree, paths: Iterable[str], pattern: str) -> tuple[str, int, str] | None:
    """Path, line and text of the first message (string or f-string) that matches."""
    compiled = re.compile(pattern)
    for path in paths:
        if tree.has(path):
            for line, text, _ in strings(tree.module_at(path).tree):
                if compiled.search(text):
                    return path, line, text
    return None


def assignments(module: ast.Module, name: str) -> Iterator[tuple[int, ast.expr]]:
    """Every assignment to a name anywhere in a module, in the order of the lines: line and value."""
    for node in in_order(module, ast.Assign, ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and any(isinstance(t, ast.Name) and t.id == name for t in targets):
            yield node.lineno, node.value


def limits(when: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions as `known.atoms_of` reads them back: the cache dtype last, a list of one as its member."""
    ordered = sorted(when.items(), key=lambda item: item[0] == "kv_cache_dtype")
    return {
        axis: value[0] if isinstance(value, list) and len(value) == 1 else value
        for axis, value in ordered
        if value is not None
    }


def in_order(module: ast.AST, *kinds: type) -> list[Any]:
    """Every node of these kinds, in the order of the lines."""
    return sorted((n for n in ast.walk(module) if isinstance(n, kinds)), key=lambda n: (n.lineno, n.col_offset))


def plain(node: ast.expr) -> Any:
    """A literal as JSON can carry it (`frozenset({...})` and sets as sorted lists); ValueError when it is none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("frozenset", "set", "tuple"):
        return plain(node.args[0]) if node.args else []
    value = ast.literal_eval(node)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def assigned(paths: Iterable[str], name: str) -> Finder:
    """A finder for the first literal that is assigned to a name."""

    def find(tree: Tree) -> Found | None:
        for path in paths:
            if tree.has(path):
                for line, value in assignments(tree.module_at(path).tree, name):
                    return plain(value), path, line
        return None

    return find


def definition(tree: Tree, path: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """A class or function of that name anywhere in a file."""
    if not tree.has(path):
        return None
    for node in ast.walk(tree.module_at(path).tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    return None


def memberships(node: ast.AST, attribute: str, kind: type = ast.NotIn) -> Iterator[tuple[int, list[Any]]]:
    """Literal lists that a name or attribute is tested against (`x.attribute not in [...]`), with their line."""
    for test in in_order(node, ast.Compare):
        if isinstance(test.ops[0], kind):
            left = test.left
            named = left.attr if isinstance(left, ast.Attribute) else left.id if isinstance(left, ast.Name) else None
            if named == attribute:
                try:
                    yield test.lineno, list(ast.literal_eval(test.comparators[0]))
                except ValueError:
                    continue
