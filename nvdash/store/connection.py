"""One door to the database file: short-lived connections behind a file gate.

DuckDB's own lock is not fair: readers that come back to back starve a writer. So every opener passes a gate.
A reader leaves it once its connection is open; a writer keeps it while it retries, and readers drain.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nvdash.store.failure import WAIT_S, StoreError, busy, unusable
from nvdash.store.migrations import back_up, bring_up, is_current

if TYPE_CHECKING:
    import duckdb

DEFAULT_STORE = Path(__file__).resolve().parents[2] / "data" / "nvdash.duckdb"
OFFLINE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
FORMAT = {"storage_compatibility_version": "v1.5.0"}
ELSEWHERE = ("Could not set lock", "different configuration", "already attached")
"""What DuckDB says while another connection, here or in another process, holds the file in another mode."""


def store_path() -> Path:
    """The database file: `NVDASH_STORE`, or `data/nvdash.duckdb` beside the code."""
    given = os.environ.get("NVDASH_STORE", "").strip()
    if ":" in given.split("/")[0]:
        hint = "write a path on a local disk, or leave NVDASH_STORE unset"
        raise StoreError("NVDASH_STORE", "a file path", f"found the scheme {given.split(':')[0]!r}", hint)
    return Path(given) if given else DEFAULT_STORE


def look(place: Path) -> tuple[int, ...]:
    """When the store's files last changed and how long they are."""
    found: list[int] = []
    for file in (place, place.with_name(place.name + ".wal")):
        try:
            status = file.stat()
        except OSError:
            continue
        found += [status.st_ino, status.st_mtime_ns, status.st_size]
    return tuple(found)


@contextmanager
def reading(path: Path | None = None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A read-only connection; a store that is missing or older is created or migrated first."""
    place = path or store_path()
    if not place.exists():
        upgrade(place)
    connection = _open_to_read(place)
    if not _current(place, connection):
        upgrade(place)
        connection = _open_to_read(place)
    with _closing(place, connection):
        yield connection


@contextmanager
def writing(path: Path | None = None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection in one transaction: committed and counted at the end, rolled back when anything raises."""
    place = path or store_path()
    with exclusive(place) as connection:
        bring_up(connection, place)
        connection.execute("BEGIN")
        yield connection
        connection.execute("UPDATE meta SET revision = revision + 1")
        connection.execute("COMMIT")


@contextmanager
def exclusive(place: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A writing connection without a transaction or a schema check, for migrations and upkeep."""
    with _gate(place):
        connection = _open(place, read_only=False)
        with _closing(place, connection):
            yield connection


def upgrade(place: Path) -> dict[str, object]:
    """Bring the store to the newest schema; says from where, to where and which backup was made."""
    with exclusive(place) as connection:
        return bring_up(connection, place)


def rewrite(place: Path) -> None:
    """Write the whole database anew in place of the old file, so that nothing deleted stays in it."""
    fresh = place.with_name(f"{place.name}.rewritten")
    with _gate(place):
        connection = _open(place, read_only=False)
        with _closing(place, connection):
            fresh.unlink(missing_ok=True)
            back_up(connection, place, fresh)
        os.replace(fresh, place)


def _open_to_read(place: Path) -> "duckdb.DuckDBPyConnection":
    with _gate(place):
        return _open(place, read_only=True)


def _current(place: Path, connection: "duckdb.DuckDBPyConnection") -> bool:
    """Whether the schema is this program's own; the connection is closed when it is not."""
    try:
        if is_current(connection, place):
            return True
    except BaseException:
        connection.close()
        raise
    connection.close()
    return False


@contextmanager
def _gate(place: Path) -> Iterator[None]:
    """Hold the gate file; give up in words when another process keeps it too long."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{place}.gate", poll_interval=0.005, timeout=WAIT_S)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as exc:
        raise busy(place) from exc
    except OSError as exc:
        hint = "choose a writable place with NVDASH_STORE"
        raise StoreError(str(place), "a writable folder on a local disk", f"found: {exc.strerror}", hint) from exc
    try:
        yield
    finally:
        lock.release()


def _open(place: Path, *, read_only: bool) -> "duckdb.DuckDBPyConnection":
    """Connect, retrying with jitter while another connection holds the file in another mode."""
    import random

    import duckdb

    config = OFFLINE if read_only else OFFLINE | FORMAT
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return duckdb.connect(str(place), read_only=read_only, config=dict(config))
        except duckdb.Error as exc:
            if not any(words in str(exc) for words in ELSEWHERE):
                raise unusable(place, exc) from exc
            if time.monotonic() > deadline:
                raise busy(place) from exc
        time.sleep(random.uniform(0.002, 0.02))  # noqa: S311 - jitter, not a secret


@contextmanager
def _closing(place: Path, connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    """Close the connection, and turn what a damaged or full file raises into a StoreError."""
    import duckdb

    broken = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
    try:
        yield
    except broken as exc:
        raise unusable(place, exc) from exc
    finally:
        connection.close()
