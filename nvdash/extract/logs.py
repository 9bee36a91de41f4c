"""The log lines of a release that state sizes, backends and kernels, as format strings with their place."""

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from nvdash.extract.source import Tree

DATA = Path(__file__).with_name("logs.yaml")


@cache
def families() -> tuple[dict[str, Any], ...]:
    """The rows of logs.yaml."""
    from nvdash.readers.yaml_rows import read_rows

    return tuple(dict(row) for row in read_rows(DATA))


def log_formats(tree: Tree) -> Iterator[dict[str, Any]]:
    """Every known log line of a release; a line that it does not have is left out."""
    for family in families():
        place = next(
            (
                found
                for file in family["files"]
                if tree.has(file)
                for found in [_first(tree, file, family["holds"])]
                if found
            ),
            None,
        )
        if place:
            path, line, text = place
            yield {"fact": f"log.{family['name']}", "value": text, "path": path, "line": line}


def _first(tree: Tree, file: str, words: str) -> tuple[str, int, str] | None:
    """The first string literal of a file that holds the words, as far as it stands on its own line."""
    for node in ast.walk(tree.module_at(file).tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            text = node.args[0].value
            if isinstance(text, str) and words in text and ast.unparse(node.func).startswith("logger."):
                return file, node.args[0].lineno, _first_piece(tree.text(file), node.args[0])
    return None


def _first_piece(source: str, node: ast.Constant) -> str:
    """The first of the literals that adjacent strings are joined from."""
    rest = "".join(source.splitlines(keepends=True)[node.lineno - 1 :])[node.col_offset :]
    token = next(tokenize.generate_tokens(io.StringIO(rest).readline))
    return str(ast.literal_eval(token.string))
