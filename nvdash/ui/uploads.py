"""Uploaded files on disk for as long as they are read, under names that we chose."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

PREFIX = "nvdash-upload-"
FOLDER = re.compile(rf"\S*{PREFIX}[^/\s]+/\d+/")
"""Where an upload lies while it is read; never shown."""


@contextmanager
def saved(files: Sequence[Any]) -> Iterator[list[Path]]:
    """Write uploads into a private folder, one sub-folder each, and remove them afterwards."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        paths = []
        for number, file in enumerate(files):
            place = Path(folder) / str(number) / safe_name(file.name)
            place.parent.mkdir()
            place.write_bytes(file.getbuffer())
            paths.append(place)
        yield paths


def safe_name(name: str) -> str:
    """The base name without anything a path or a terminal could read."""
    base = "".join(c if c.isalnum() or c in "._-" else "_" for c in PurePath(name.replace("\\", "/")).name)
    return base.lstrip(".")[:120] or "upload"
