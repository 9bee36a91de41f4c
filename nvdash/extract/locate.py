"""Finds what a release moved about: the files and names listed in paths.yaml."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

from nvdash.extract.source import ExtractError, Module, Tree

DATA = Path(__file__).with_name("paths.yaml")


@cache
def places(what: str) -> tuple[tuple[str, str], ...]:
    """The (file, name) pairs under which releases keep `what`."""
    from nvdash.readers.yaml_rows import read_yaml

    return tuple((row["file"], row["name"]) for row in read_yaml(DATA)[what])


def find(tree: Tree, what: str) -> tuple[Module, str, Any] | None:
    """The module, name and statement of `what`, or None when this release has none."""
    for file, name in places(what):
        if tree.has(file):
            module = tree.module_at(file)
            node = module.last(name)
            if node is not None and not isinstance(node, ast.Import | ast.ImportFrom):
                return module, name, node
    return None


def require(tree: Tree, what: str) -> tuple[Module, str, Any]:
    """As `find`, refused with the places that were tried when a release has moved or renamed it."""
    found = find(tree, what)
    if found is None:
        tried = " or ".join(f"{file}:{name}" for file, name in places(what))
        raise ExtractError(
            f"vllm {tree.release}",
            f"{what} at {tried}",
            "none of them",
            f"find where this release keeps it and add the place to {DATA.name} under {what}",
        )
    return found
