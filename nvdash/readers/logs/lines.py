"""Log lines as the server wrote them: without colour, wraps, container prefixes and progress bars.

Terminals, docker, compose, Ray and journald each add something. Everything that is not the message is taken off here,
so that a framework's reader sees one message per line, whoever kept the log.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nvdash.readers.source import FileRefused, Source

MAX_LOG_LINES = 2_000_000
MAX_TEXT = 16_384
LONG = 2_048
MIN_WRAP = 60
_NEVER_FIRST = (":", ",", ")", "]", "}")

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]{0,200}\x07")
_SERVICE = re.compile(r"^([A-Za-z][\w.-]{0,62}?)\s*\| ")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s*(?:\| ?)?")
_LOGFMT = re.compile(r'\b(?:msg|message)="((?:[^"\\]|\\.)*)"')
_STARTS = re.compile(
    r"\s*(?:\(|\[|\d{4}-\d\d-\d\d|[A-Za-z][\w.-]*\s*\| |Loading |Capturing |=)"
    r"|.{0,100}?(?:\b(?:DEBUG|INFO|WARNING|ERROR)\b|\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)"
)
_GLUED = re.compile(r"(?<=[\])\w%.])(?=(?:\([A-Za-z]\w*(?: \w+)? pid=\d+\) )+(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d )")
_NOISE = (b'HTTP/1.1"', b'HTTP/1.0"', b"Received request ", b"Added request ")
"""Lines about single requests: no fact about the server, and prompts in some releases."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message and the compose service that wrote it."""

    text: str
    service: str | None = None


def log_lines(source: Source) -> Iterator[Line]:
    """The messages of a log, unwrapped, as far as the time allows; lines about single requests are left out."""
    widths = _wrap_widths(_texts(source, 20_000))
    yield from (line for line in _unwrapped(_texts(source, MAX_LOG_LINES), widths) if line.text)


def _texts(source: Source, limit: int) -> Iterator[str]:
    for number, raw in enumerate(source.lines()):
        if number >= limit or ((number % 10_000 == 9_999 or len(raw) > LONG) and source.deadline.near()):
            return
        if not any(noise in raw for noise in _NOISE):
            yield from _decoded(source.name, number, raw)


def _decoded(where: str, number: int, raw: bytes) -> Iterator[str]:
    """The text of one raw line: colour off, only what a carriage return left visible, JSON wrappers opened."""
    try:
        text = raw[:MAX_TEXT].decode("utf-8", "strict" if len(raw) <= MAX_TEXT else "ignore")
    except UnicodeDecodeError as error:
        hint = "save the file as UTF-8"
        raise FileRefused(f"{where}, line {number + 1}", "UTF-8 text", f"byte {error.start} is not", hint) from error
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    text = text.lstrip("\ufeff")
    if text.startswith("{"):
        text = _unwrapped_json(text)
    elif 'msg="' in text or 'message="' in text:
        text = _unwrapped_logfmt(text)
    for part in text.split("\r"):
        yield from _GLUED.split(part) if "pid=" in part else (part,)


def _unwrapped_json(text: str) -> str:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return text
    found = next((record[key] for key in ("log", "message", "msg") if isinstance(record.get(key), str)), text)
    return str(found).rstrip("\r\n")


def _unwrapped_logfmt(text: str) -> str:
    match = _LOGFMT.search(text)
    return match[1].replace('\\"', '"') if match else text


def _wrap_widths(texts: Iterable[str]) -> frozenset[int]:
    """The columns where a terminal broke lines: lengths that are again and again followed by no new message."""
    broken: Counter[int] = Counter()
    last, begun = 0, False
    for text in texts:
        starts = bool(_STARTS.match(text))
        begun |= starts
        if begun and last >= MIN_WRAP and text and not starts:
            broken[last] += 1
        last = len(text)
    return frozenset(length for length, times in broken.items() if times > 1)


def _unwrapped(texts: Iterable[str], widths: frozenset[int]) -> Iterator[Line]:
    pending, last = "", 0
    for text in texts:
        if pending and _continues(text, last, widths) and len(pending) < MAX_TEXT:
            pending, last = pending + text, len(text)
            continue
        if pending:
            yield _line(pending)
        pending, last = text, len(text)
    if pending:
        yield _line(pending)


def _continues(text: str, last: int, widths: frozenset[int]) -> bool:
    """Whether a line goes on with the message that filled the line before it."""
    return last >= MIN_WRAP and (text[:1] in _NEVER_FIRST or (last in widths and not _STARTS.match(text)))


def _line(text: str) -> Line:
    service = _SERVICE.match(text)
    text = text[service.end() :] if service else text
    return Line(_STAMP.sub("", text, count=1) if text[:2].isdigit() else text, service[1] if service else None)
