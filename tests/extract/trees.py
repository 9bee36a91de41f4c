"""Small source trees for the extractor's tests, written here and never taken from a framework."""

from pathlib import Path
from textwrap import dedent

from nvdash.extract.source import Tree


def tree_of(folder: Path, files: dict[str, str], package: str, release: str = "1.0.0") -> Tree:
    """An unpacked tree of these files."""
    (folder / package).mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        full = folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return Tree(folder, release, package)
