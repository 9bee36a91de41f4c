"""Small answers of a store, kept beside it as JSON, so that a cold question need not open the database."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvdash.store.connection import look

Rows = list[dict[str, Any]]


def kept(place: Path, name: str, compute: Callable[[Path], Rows]) -> Rows:
    """The kept answer if it is of the store as it is now, else a new one; nothing while there is no store."""
    if not place.exists():
        return []
    file = place.with_name(f"{place.name}.{name}.json")
    rows = _read(file, look(place))
    if rows is None:
        rows = compute(place)
        _write(file, look(place), rows)
    return rows


def _read(file: Path, seen: tuple[int, ...]) -> Rows | None:
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return list(held["rows"]) if isinstance(held, dict) and held.get("look") == list(seen) else None


def _write(file: Path, seen: tuple[int, ...], rows: Rows) -> None:
    """Keep the answer; a folder that cannot be written only costs time."""
    from tempfile import NamedTemporaryFile

    try:
        with NamedTemporaryFile("w", dir=file.parent, delete=False, suffix=".tmp", encoding="utf-8") as new:
            json.dump({"look": list(seen), "rows": rows}, new)
        os.replace(new.name, file)
    except OSError:
        return
