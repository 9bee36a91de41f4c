"""How a store that cannot be used is told: locked, damaged, newer, or not writable."""

from pathlib import Path

from nvdash.errors import NvdashError

WAIT_S = 20.0
"""How long an opener waits for others before it says so."""


class StoreError(NvdashError):
    """The database cannot be used as it stands."""


def busy(place: Path) -> StoreError:
    """Another process kept the store for too long."""
    hint = "another process keeps it open; end it, or point NVDASH_STORE at another file"
    return StoreError(str(place), f"the store to be free within {WAIT_S:.0f} s", "found it locked", hint)


def unusable(place: Path, error: Exception) -> StoreError:
    """DuckDB or the file system refuses the file: the first line of the reason and the way back."""
    backups = sorted(place.parent.glob(f"{place.name}.backup-*"))
    back = f"copy {backups[-1].name} over it" if backups else "move the file away and a new store is made"
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return StoreError(str(place), "a nvdash store that can be opened", f"found: {reason}", back)
