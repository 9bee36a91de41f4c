"""Which matrix files there are, and the digest that names their content.

Imports only the standard library: every JSON answer carries the digest, also those that need no fact.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[2] / "matrix"
OVERLAY_VARIABLE = "NVDASH_MATRIX_PATH"
DIGEST_DIGITS = 12


def matrix_roots() -> tuple[Path, ...]:
    """The shipped matrix, then the team's overlay folders; a later root wins."""
    overlays = os.environ.get(OVERLAY_VARIABLE, "")
    return (SHIPPED, *(Path(part) for part in overlays.split(os.pathsep) if part))


def matrix_files(*suffix: str) -> list[Path]:
    """Every YAML file of the matrix in a fixed order, below the sub-folder `suffix` when one is given."""
    roots = (root.joinpath(*suffix) for root in matrix_roots())
    return [path for root in roots for path in sorted(root.rglob("*.yaml"))]


def digest_of(files: list[Path]) -> str:
    """SHA-256 over names and contents, first 12 hex digits; equal content gives the same digest on any machine."""
    whole = hashlib.sha256()
    for path, name in zip(files, _portable_names(files), strict=True):
        content = path.read_bytes()
        whole.update(f"{name}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()[:DIGEST_DIGITS]


def matrix_digest() -> str:
    """The digest of all matrix files as they are now; remembered while no file changes size or time."""
    files = matrix_files()
    return _digest(tuple(files), tuple(_stamp(path) for path in files))


@lru_cache(maxsize=8)
def _digest(files: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> str:
    return digest_of(list(files))


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _portable_names(files: list[Path]) -> list[str]:
    roots = matrix_roots()
    return [_portable_name(path, roots) for path in files]


def _portable_name(path: Path, roots: tuple[Path, ...]) -> str:
    for number, root in enumerate(roots):
        if path.is_relative_to(root):
            return f"{number}:{path.relative_to(root).as_posix()}"
    return path.name
