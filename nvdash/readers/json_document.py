"""JSON from strangers: one pass that cuts what no reader wants, then a strict parse of the rest.

Per-request arrays and long texts make result files large. They are cut out of the bytes before anything is parsed, so
a file of 200 MB needs the memory of its summary. Duplicate keys, NaN, deep nesting and endless structures are refused.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nvdash.readers.source import FileRefused, Source

MAX_DEPTH = 64
MAX_DOCUMENTS = 100_000
MAX_DIGITS = 24
MAX_KEPT_BYTES = 24 * 2**20
LONG_ARRAY = 32 * 1024
LONG_STRING = 64 * 1024
_CHECK_EVERY = 50_000
_RELEASE_EVERY = 16 * 2**20

PER_REQUEST = frozenset(
    b"latencies queue_times input_lens output_lens ttfts itls start_times generated_texts errors server_ttfts"
    b" server_queue_times output_details successful errored incomplete request_samples samples".split()
)
"""Arrays under these keys hold one value or record per request."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|\[[^\[\]{}"]*+\]|[\[\]{}"]', re.DOTALL)
_BETWEEN_KEY_AND_VALUE = re.compile(rb"\s*:\s*\Z")
_SPACE = b" \t\r\n"
_SPACES = re.compile(rb"[\s\x1e]*")

Streams = Mapping[bytes, Callable[[Source, int], int]]
"""Consumers of arrays that are read item by item: called with the place of the bracket, return the place behind it."""


def documents(source: Source, streams: Streams | None = None) -> Iterator[Any]:
    """Every JSON value of the file, one after another: a single document, or JSON Lines."""
    start, number, size = _skip_space(source, 3 if source.buffer[:3] == b"\xef\xbb\xbf" else 0), 0, 0
    while start < source.size:
        number += 1
        kept, end = _Pruner(source, start, streams or {}).run()
        size += len(kept)
        if number > MAX_DOCUMENTS or size > MAX_KEPT_BYTES:
            limit = f"at most {MAX_DOCUMENTS:,} documents and {MAX_KEPT_BYTES >> 20} MiB beside per-request arrays"
            raise FileRefused(source.name, limit, f"document {number:,} goes over that", "split the file by its lines")
        source.deadline.check(source.name)
        yield parse(kept, f"{source.name}, document {number}" if number > 1 else source.name)
        if end - start > _RELEASE_EVERY:
            source.release(end)
        start = _skip_space(source, end)


def _skip_space(source: Source, start: int) -> int:
    match = _SPACES.match(source.buffer, start)
    return match.end() if match else start


class _Pruner:
    """One walk over the brackets and strings of a JSON value; keeps the bytes between what it cuts."""

    def __init__(self, source: Source, start: int, streams: Streams) -> None:
        self.source, self.buffer, self.streams = source, source.buffer, streams
        self.start, self.copied, self.released = start, start, start
        self.kept: list[bytes] = []
        self.kept_size = 0
        self.open: list[tuple[int, int, int]] = []
        """Per open bracket: its place, and the length of `kept` and the place copied up to when it opened."""
        self.cutting = 0
        """Depth of the array that is being cut, 0 for none."""
        self.key_end, self.key = -1, b""

    def run(self) -> tuple[bytes, int]:
        """The kept bytes of the value and the place behind it."""
        if self.buffer[self.start : self.start + 1] not in (b"{", b"["):
            raise self.refuse("a JSON object or array", "found something else", self.start)
        place: int | None = self.start
        while place is not None:
            place, end = self._walk(place)
        return b"".join(self.kept), end

    def _walk(self, start: int) -> tuple[int | None, int]:
        """Walk until the value ends or an item-wise consumer took an array; then go on behind that."""
        for count, token in enumerate(_TOKEN.finditer(self.buffer, start), 1):
            if count % _CHECK_EVERY == 0 or token.end() - self.released > _RELEASE_EVERY:
                self._pause(token.start())
            first, end = token.start(), token.end()
            byte = self.buffer[first]
            if byte == 0x22:
                self._string(first, end)
            elif byte in b"[{" and end - first == 1:
                if resumed := self._opens(first, byte):
                    return resumed, -1
            elif end - first > 1:
                self._flat(first, end)
            elif self._closes(first, byte):
                return None, end
            if not self.open and end - first > 1:
                return None, end
        raise self.refuse("a whole JSON document", "it ends inside a value", self.source.size)

    def _pause(self, place: int) -> None:
        self.source.deadline.check(self.source.name)
        self.source.release(place)
        self.released = place

    def _string(self, first: int, end: int) -> None:
        if end - first == 1:
            raise self.refuse("a whole JSON document", "a text that never ends", first)
        if self.cutting:
            return
        if end - first > LONG_STRING:
            self._cut(first, end, b'""')
        else:
            self.key, self.key_end = self.buffer[first + 1 : end - 1], end

    def _key_of(self, place: int) -> bytes | None:
        """The key in front of this place, None inside an array."""
        if 0 <= self.key_end <= place and place - self.key_end < 256:
            return self.key if _BETWEEN_KEY_AND_VALUE.match(self.buffer[self.key_end : place]) else None
        return None

    def _opens(self, place: int, byte: int) -> int | None:
        if len(self.open) >= MAX_DEPTH:
            raise self.refuse(f"at most {MAX_DEPTH} levels", "found deeper nesting", place)
        if not self.cutting:
            key = self._key_of(place)
            consumer = self.streams.get(key) if key is not None and byte == 0x5B and len(self.open) == 1 else None
            if consumer:
                end = consumer(self.source, place)
                self._cut(place, end, b"[]")
                return end
            if byte == 0x5B and key in PER_REQUEST:
                self.cutting = len(self.open) + 1
        self.open.append((place, len(self.kept), self.copied))
        return None

    def _flat(self, first: int, end: int) -> None:
        if not self.cutting and (end - first > LONG_ARRAY or self._key_of(first) in PER_REQUEST):
            self._cut(first, end, b"[]")
        elif not self.cutting and not self.open:
            self._keep(end)

    def _closes(self, place: int, byte: int) -> bool:
        """Close a bracket; True when it was the outermost one."""
        if not self.open or (self.buffer[self.open[-1][0]] == 0x5B) != (byte == 0x5D):
            raise self.refuse("matching brackets", "found a bracket that closes nothing", place)
        start, kept, copied = self.open.pop()
        if self.cutting:
            if self.cutting == len(self.open) + 1:
                self.cutting = 0
                self._cut(start, place + 1, b"[]")
        elif byte == 0x5D and place - start > LONG_ARRAY and not self._holds_objects(start):
            del self.kept[kept:]
            self.copied = copied
            self._cut(start, place + 1, b"[]")
        if not self.open:
            self._keep(place + 1)
        return not self.open

    def _holds_objects(self, start: int) -> bool:
        return self.buffer[start + 1 : start + 64].lstrip(_SPACE)[:1] == b"{"

    def _cut(self, first: int, end: int, instead: bytes) -> None:
        self._keep(first)
        self.kept.append(instead)
        self.copied = end

    def _keep(self, end: int) -> None:
        if end > self.copied:
            self.kept_size += end - self.copied
            if self.kept_size > MAX_KEPT_BYTES:
                raise self.refuse("a summary of a run", f"more than {MAX_KEPT_BYTES:,} bytes of it", end)
            self.kept.append(self.buffer[self.copied : end])
        self.copied = end

    def refuse(self, expected: str, found: str, place: int) -> FileRefused:
        """The refusal of this document at a byte."""
        return FileRefused(f"{self.source.name}, byte {place}", expected, found)


def parse(content: bytes, where: str) -> Any:
    """The value of JSON bytes: UTF-8, each key once, no NaN."""
    try:
        text = content.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant, parse_int=_whole)
    except UnicodeDecodeError as error:
        raise FileRefused(where, "UTF-8 text", f"byte {error.start} is not", "save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        raise FileRefused(f"{where}, line {error.lineno}", "valid JSON", error.msg.lower()) from error
    except (ValueError, RecursionError) as error:
        raise FileRefused(where, "valid JSON", str(error)) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:80]!r} stands twice in one object")
    return values


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)


def _constant(word: str) -> float:
    if word == "Infinity":
        return float("inf")
    raise ValueError(f"{word} is not a measurement")
