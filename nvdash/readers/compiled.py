"""Facts compiled to JSON once per content, so that a cold start parses no YAML.

The name of a compiled file is the digest of what it was made from; a stale one is never read.
"""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nvdash import __version__
from nvdash.readers.digest import digest_of

CACHE_VARIABLE = "NVDASH_CACHE"


def cache_folder() -> Path:
    """Where compiled facts are kept: $NVDASH_CACHE, or `nvdash` in the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nvdash"


def compiled(name: str, files: list[Path], build: Callable[[], Any]) -> Any:
    """The JSON value that `build` makes of these files, from the cache when their content was compiled before.

    The reader's own source counts as content: a changed reader compiles anew.
    """
    path = cache_folder() / f"{name}-{__version__}-{digest_of([*files, Path(__file__).with_name(f'{name}.py')])}.json"
    with suppress(OSError, ValueError):
        return json.loads(path.read_bytes())
    value = build()
    with suppress(OSError):
        _write(path, value)
    return value


def _write(path: Path, value: Any) -> None:
    """Write beside the target and rename, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(temporary, path)
