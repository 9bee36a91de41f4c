"""Facts compiled to JSON once per content, so that a cold start parses no YAML.

The name of a compiled file is the digest of what it was made from; a stale one is never read.
"""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash import __version__
from nvdash.readers.digest import digest_of, file_name

CACHE_VARIABLE = "NVDASH_CACHE"


def cache_folder() -> Path:
    """Where compiled facts are kept: $NVDASH_CACHE, or `nvdash` in the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nvdash"


def compiled(name: str, files: list[Path], build: Callable[[], Any]) -> Any:
    """The JSON value that `build` makes of these files, from the cache when their content was compiled before.

    `name` is the reader's module; its own source counts as content: a changed reader compiles anew.
    """
    path = cache_folder() / f"{_stem(name, files)}.json"
    with suppress(OSError, ValueError):
        return json.loads(path.read_bytes())
    value = build()
    with suppress(OSError):
        _write(path, value)
    return value


def compiled_part(
    name: str, title: str, files: list[Path], part: str, build: Callable[[], dict[str, Any]]
) -> Any | None:
    """One part of the mapping that `build` makes of these files, read alone; None when there is no such part."""
    folder = cache_folder() / f"{title}-{_stem(name, files)}"
    with suppress(OSError, ValueError):
        parts = json.loads((folder / "parts.json").read_bytes())
        return json.loads((folder / f"{file_name(part)}.json").read_bytes()) if part in parts else None
    values = build()
    with suppress(OSError):
        for key, value in values.items():
            _write(folder / f"{file_name(key)}.json", value)
        _write(folder / "parts.json", list(values))
    return values.get(part)


def _stem(name: str, files: list[Path]) -> str:
    return f"{name}-{__version__}-{digest_of([*files, *_sources(name)])}"


@lru_cache(maxsize=16)
def _sources(name: str) -> tuple[Path, ...]:
    """The modules that decide what a compiled value looks like."""
    here = Path(__file__).parent
    patterns: Iterable[str] = (f"{name}*.py", "yaml_rows.py", "statement*.py")
    return tuple(sorted({path for pattern in patterns for path in here.glob(pattern)}))


def _write(path: Path, value: Any) -> None:
    """Write beside the target and rename, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    import tempfile

    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(temporary, path)
