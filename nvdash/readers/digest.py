"""Which matrix files there are, and the digest that names their content.

Imports nothing that is slow: every JSON answer carries the digest, also those that need no fact.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from nvdash.errors import UsageError

SHIPPED = Path(__file__).resolve().parents[2] / "matrix"
OVERLAY_VARIABLE = "NVDASH_MATRIX_PATH"
DIGEST_DIGITS = 12


def matrix_roots() -> tuple[Path, ...]:
    """The shipped matrix, then the team's overlay folders; a later root wins."""
    overlays = [part for part in os.environ.get(OVERLAY_VARIABLE, "").split(os.pathsep) if part]
    for part in overlays:
        if not os.path.isdir(part):
            raise UsageError(OVERLAY_VARIABLE, f"folders, separated by {os.pathsep!r}", f"{part} is none")
    return (SHIPPED, *map(Path, overlays))


def matrix_files(*below: str) -> list[Path]:
    """Every YAML file of the matrix in a fixed order, below the sub-folder `below` when one is given."""
    return [Path(name) for name in _names(*below)]


def _names(*below: str) -> list[str]:
    """The same as plain text: every answer looks at all of them."""
    roots = (str(root.joinpath(*below)) for root in matrix_roots())
    return [name for root in roots for name in sorted(_yaml_below(root), key=lambda name: name.split(os.sep))]


def _yaml_below(folder: str) -> Iterator[str]:
    """Files below a folder that end in .yaml, hidden ones included; a folder that cannot be read has none."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _yaml_below(entry.path)
            elif entry.name.endswith(".yaml"):
                yield entry.path


def shown(path: Path) -> str:
    """A matrix file's name as a person writes it: below the project, or the overlay's own path."""
    return str(path.relative_to(SHIPPED.parent)) if path.is_relative_to(SHIPPED) else str(path)


def file_name(name: str) -> str:
    """A name as a file may carry it; characters outside [A-Za-z0-9._-] become an underscore."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def matrix_digest() -> str:
    """The digest of all matrix files as they are now."""
    return digest_of(_names())


def digest_of(files: Iterable[Path | str]) -> str:
    """SHA-256 over names and contents, first 12 hex digits; equal content gives the same digest on any machine."""
    roots = [f"{root}{os.sep}" for root in matrix_roots()]
    whole = hashlib.sha256()
    for path in map(str, files):
        status = os.stat(path)
        whole.update(f"{_portable(path, roots)}\0".encode())
        whole.update(_content_digest(path, status.st_size, status.st_mtime_ns))
    return whole.hexdigest()[:DIGEST_DIGITS]


@lru_cache(maxsize=4096)
def _content_digest(path: str, size: int, modified_ns: int) -> bytes:
    """Remembered while the file keeps its size and time."""
    return hashlib.sha256(Path(path).read_bytes()).digest()


def _portable(path: str, roots: list[str]) -> str:
    """The name below its root, which is the same wherever the project lies."""
    for number, root in enumerate(roots):
        if path.startswith(root):
            return f"{number}:{path[len(root) :].replace(os.sep, '/')}"
    return os.path.basename(path)
