"""How a file comes in: its bytes, unpacked, within limits of size and time.

Uploads are hostile. A compressed file is unpacked to a temporary file up to a limit, everything is mapped instead of
loaded, and a deadline ends what would take too long.
"""

import contextlib
import mmap
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from nvdash.errors import UsageError

MAX_RAW_MIB = 200
MAX_UNPACKED_BYTES = 10**9
MAX_SECONDS = 7.0
"""Processor seconds one file may take; a busy machine makes it wait longer, not fail."""
MAX_WAIT_SECONDS = 60.0
MAX_LINE = 1 << 20
_CHUNK = 1 << 20

_PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ": "an xz archive",
    b"BZh": "a bzip2 archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database (export it with nsys stats or .mode json)",
}


class FileRefused(UsageError):
    """A file that cannot be read as it stands."""


class Deadline:
    """How long the reading of one file may go on, in processor seconds of its thread."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._started, self._waited_since = time.thread_time(), time.monotonic()

    def _used(self) -> float:
        """The share of the time that is over; waiting counts as well, on its own scale."""
        working = (time.thread_time() - self._started) / self.seconds
        return max(working, (time.monotonic() - self._waited_since) / MAX_WAIT_SECONDS)

    def near(self) -> bool:
        """Whether most of the time is over: what was read until then can still be answered."""
        return self._used() > 0.75

    def check(self, where: str) -> None:
        """Refuse the file when the time is over."""
        if self._used() > 1:
            raise FileRefused(
                where,
                f"a file that is read within {self.seconds:g} s",
                "reading it took longer",
                "cut per-request records out of it, or raise NVDASH_READ_SECONDS",
            )


class Source:
    """The unpacked bytes of one file, mapped into memory."""

    def __init__(self, name: str, stream: IO[bytes], deadline: Deadline) -> None:
        self.name, self.deadline, self._stream = name, deadline, stream
        self.size = stream.seek(0, os.SEEK_END)
        self.buffer = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    def head(self, size: int = 65536) -> bytes:
        """The first bytes."""
        return self.buffer[:size]

    def lines(self) -> Iterator[bytes]:
        """The lines without their ends; a line over 1 MiB keeps its beginning."""
        self._stream.seek(0)
        cut = False
        while line := self._stream.readline(MAX_LINE):
            ended = line.endswith(b"\n")
            if not cut:
                yield line.rstrip(b"\r\n")
            cut = not ended

    def release(self, end: int) -> None:
        """Give back the memory of what lies before this place."""
        if hasattr(self.buffer, "madvise"):
            self.buffer.madvise(mmap.MADV_DONTNEED, 0, end - end % mmap.PAGESIZE)

    def close(self) -> None:
        """Unmap and close; a temporary file is gone afterwards."""
        with contextlib.suppress(BufferError):
            self.buffer.close()
        self._stream.close()


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """The file at this path, unpacked when it is gzip, refused when it is empty, too large or another archive."""
    deadline = Deadline(float(os.environ.get("NVDASH_READ_SECONDS", MAX_SECONDS)))
    stream = _open(path)
    try:
        head = stream.read(16)
        stream.seek(0)
        _refuse_packed(path.name, head)
        if head.startswith(b"\x1f\x8b"):
            stream = _unpacked(path.name, stream, deadline)
            _refuse_packed(path.name, stream.read(16))
        source = Source(path.name, stream, deadline)
    except BaseException:
        stream.close()
        raise
    try:
        yield source
    finally:
        source.close()


def max_raw_bytes() -> int:
    """The largest file that is read, from NVDASH_MAX_UPLOAD_MIB."""
    return int(os.environ.get("NVDASH_MAX_UPLOAD_MIB", MAX_RAW_MIB)) * 2**20


def _open(path: Path) -> IO[bytes]:
    where = path.name
    try:
        if path.is_dir():
            raise FileRefused(where, "a file", "found a folder", "name the files in it")
        size = path.stat().st_size
        if size > max_raw_bytes():
            raise FileRefused(where, f"at most {max_raw_bytes():,} bytes", f"found {size:,}", "compress it with gzip")
        stream = path.open("rb")
    except OSError as error:
        raise FileRefused(where, "a readable file", error.strerror or "it could not be opened") from error
    if not size:
        stream.close()
        raise FileRefused(where, "a file with content", "found an empty file")
    return stream


def _refuse_packed(where: str, head: bytes) -> None:
    for magic, what in _PACKED.items():
        if head.startswith(magic):
            raise FileRefused(where, "UTF-8 text or a gzip file", f"found {what}", "unpack or convert it first")
    if b"\x00" in head and not head.startswith(b"\x1f\x8b"):
        raise FileRefused(where, "UTF-8 text or a gzip file", "found binary data")


def _unpacked(where: str, packed: IO[bytes], deadline: Deadline) -> IO[bytes]:
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 (closed by its Source)
    try:
        _inflate(where, packed, unpacked, deadline)
    except BaseException:
        unpacked.close()
        raise
    packed.close()
    unpacked.seek(0)
    return unpacked


def _inflate(where: str, packed: IO[bytes], unpacked: IO[bytes], deadline: Deadline) -> None:
    """Unpack every gzip member, in pieces, up to the limit."""
    member, size, rest = zlib.decompressobj(wbits=31), 0, b""
    try:
        while chunk := rest or packed.read(_CHUNK):
            piece = member.decompress(chunk, _CHUNK)
            size += unpacked.write(piece)
            if size > MAX_UNPACKED_BYTES:
                raise FileRefused(where, f"at most {MAX_UNPACKED_BYTES:,} bytes unpacked", "found more")
            deadline.check(where)
            rest = member.unconsumed_tail
            if member.eof:
                rest, member = member.unused_data.lstrip(b"\x00"), zlib.decompressobj(wbits=31)
                if rest and not rest.startswith(b"\x1f\x8b"):
                    raise FileRefused(where, "one gzip file", "found other data behind it")
    except zlib.error as error:
        raise FileRefused(where, "a sound gzip file", "found a damaged one") from error
    if not size or not _ended(member):
        raise FileRefused(where, "a whole gzip file", "found one that is empty or cut off")


def _ended(member: "zlib._Decompress") -> bool:
    """Whether no member was left half read: the fresh object behind the last member has seen nothing."""
    try:
        return not member.flush() and not member.unconsumed_tail
    except zlib.error:
        return False
