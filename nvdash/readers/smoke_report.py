"""A smoke report: what one case asked for, what was resolved, what was observed, and the verdict.

Reports come back as uploads from machines we do not know, so everything in them is checked and bounded: known keys,
closed vocabularies, plain finite values. Paths and addresses are dropped from every text.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from nvdash.readers.json_document import parse
from nvdash.readers.source import FileRefused

SCHEMA = "nvdash.smoke/1"
MAX_BYTES = 8 * 2**20
MAX_TEXT, MAX_ITEMS, MAX_DEPTH = 4_000, 4_000, 8

VERDICTS = (
    *("pass", "pass_dtype_unproven", "fallback", "refused", "wrong_result"),
    *("crash", "timeout", "oom", "no_trace", "environment"),
)
"""Best first; only the first two may raise a cell of the matrix."""
ENGINES = ("reference", "flashinfer", "vllm", "sglang")
LAYERS = ("config", "selector", "constructor", "forward", "kernel", "silent")
STAGES = ("weights", "kv_write", "prefill", "decode")
PHASES = ("import", "build", "allocate", "prefill", "decode", "compare")

_PATH = re.compile(r"(?<![\w.<:/])(?:[A-Za-z]:)?/(?:[^\s/'\",;:()\[\]{}<>|]+/)+([^\s/'\",;:()\[\]{}<>|]*)")
_URL = re.compile(r"\b(?:https?|tcp|ipc|file)://[^\s'\",)\]}]+")
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")


@dataclass(frozen=True, slots=True)
class SmokeReport:
    """One case of one engine; a missing fact is None, never a default."""

    case_id: str
    ran_at: str
    engine: str
    framework: str
    """Whose matrix rows the case speaks about: the engine, and `flashinfer` for that engine."""
    release: str | None
    arch: str | None
    gpu: str | None
    verdict: str
    layer: str | None
    reason: str
    question: Mapping[str, Any]
    environment: Mapping[str, Any]
    requested: Mapping[str, Any]
    resolved: Mapping[str, Any]
    observed: Mapping[str, Any]
    cache: Mapping[str, Any]
    """Pool, blocks and bytes per token: formula and allocated, data and scales apart."""
    stages: Mapping[str, Mapping[str, Any]]
    scope: Mapping[str, Any]
    """Exactly what ran: head sizes, layer kinds, graphs mode."""
    kernels: tuple[Mapping[str, Any], ...]
    launches: tuple[Mapping[str, Any], ...]
    numbers: tuple[Mapping[str, Any], ...]
    timings: Mapping[str, Any]
    phases: tuple[Mapping[str, Any], ...]
    attempts: tuple[Mapping[str, Any], ...]
    not_tested: tuple[str, ...]
    log: tuple[str, ...]
    nvdash_version: str = ""
    schema: str = SCHEMA

    @property
    def is_cuda(self) -> bool:
        """Whether a kernel of a CUDA device ran under it."""
        return self.environment.get("device") == "cuda" and self.engine != "reference"

    @property
    def validates(self) -> bool:
        """Whether it may raise a cell of the matrix."""
        return self.verdict in VERDICTS[:2] and self.engine != "reference"

    def as_dict(self) -> dict[str, Any]:
        """The JSON object that a report file holds."""
        parts = {field.name: _mutable(getattr(self, field.name)) for field in fields(self)}
        return {"schema": parts.pop("schema"), "nvdash_version": parts.pop("nvdash_version"), **parts}


def _mutable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _mutable(item) for key, item in value.items()}
    return [_mutable(item) for item in value] if isinstance(value, list | tuple) else value


def read(path: Path) -> SmokeReport:
    """The report in a file; anything else is refused with its place and the reason."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= MAX_BYTES else b""
    except OSError as error:
        raise FileRefused(path.name, "a readable smoke report", error.strerror or str(error)) from error
    if size > MAX_BYTES:
        raise FileRefused(path.name, f"a smoke report of at most {MAX_BYTES:,} bytes", f"{size:,} bytes")
    return from_dict(parse(content, path.name), path.name)


def is_report(value: object) -> bool:
    """Whether a JSON value says of itself that it is a smoke report of any version."""
    return isinstance(value, Mapping) and str(value.get("schema", "")).startswith("nvdash.smoke/")


def from_dict(value: Any, where: str = "smoke report") -> SmokeReport:
    """The report that a JSON value holds."""
    if not is_report(value):
        raise FileRefused(where, f"a smoke report ({SCHEMA})", "no schema key that says so")
    if value["schema"] != SCHEMA:
        hint = "a newer nvdash wrote it; upgrade this one"
        raise FileRefused(f"{where} schema", SCHEMA, f"found {str(value['schema'])[:40]!r}", hint)
    known = {field.name for field in fields(SmokeReport)}
    if unknown := sorted(set(value) - known):
        raise FileRefused(where, "only the keys of a smoke report", f"found {unknown[0][:60]!r}")
    if missing := sorted(REQUIRED - set(value)):
        raise FileRefused(where, f"the key {missing[0]!r}", "it is missing")
    for key, item in value.items():
        _check(key, item, f"{where} {key}")
    parts: dict[str, Any] = {key: plain(item, f"{where} {key}") for key, item in value.items()}
    parts.update({key: tuple(item) for key, item in parts.items() if isinstance(item, list)})
    return SmokeReport(**parts)


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """A bounded copy of a plain value, its texts scrubbed; anything else is refused."""
    if value is None or isinstance(value, bool | int):
        if isinstance(value, int) and abs(value) >= 2**63:
            raise FileRefused(where, "a 64-bit number", "a larger one")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise FileRefused(where, "a finite number or null", f"got {value}")
        return value
    if isinstance(value, str):
        return scrub(value[:MAX_TEXT])
    if depth >= MAX_DEPTH or not isinstance(value, list | tuple | Mapping):
        raise FileRefused(where, "plain values in few levels", f"got {type(value).__name__} at level {depth}")
    if len(value) > MAX_ITEMS:
        raise FileRefused(where, f"at most {MAX_ITEMS:,} entries", f"found {len(value):,}")
    if isinstance(value, Mapping):
        return {scrub(str(key)[:200]): plain(item, where, depth + 1) for key, item in value.items()}
    return [plain(item, where, depth + 1) for item in value]


def scrub(text: str) -> str:
    """The text without addresses and absolute paths; a path keeps its last part."""
    text = _URL.sub("<url>", "".join(sign for sign in text if sign.isprintable() or sign in "\n\t"))
    return _ADDRESS.sub("<ip>", _PATH.sub(lambda found: f"<path>/{found[1]}", text))


def _one_of(words: Iterable[str]) -> Callable[[Any], str | None]:
    known = tuple(words)
    return lambda item: None if item in known else f"one of {', '.join(known)}"


def _kind(kind: type, words: str, optional: bool = False) -> Callable[[Any], str | None]:
    return lambda item: None if isinstance(item, kind) or (optional and item is None) else words


def _stages(item: Any) -> str | None:
    fits = isinstance(item, Mapping) and all(
        name in STAGES and isinstance(part, Mapping) for name, part in item.items()
    )
    return None if fits else f"an object of {', '.join(STAGES)}"


def _objects(item: Any) -> str | None:
    return None if isinstance(item, list) and all(isinstance(row, Mapping) for row in item) else "a list of objects"


def _texts(item: Any) -> str | None:
    return None if isinstance(item, list) and all(isinstance(row, str) for row in item) else "a list of texts"


_TEXT, _OPTIONAL, _OBJECT = _kind(str, "a text"), _kind(str, "a text or null", True), _kind(Mapping, "an object")
_RULES: dict[str, Callable[[Any], str | None]] = {
    **dict.fromkeys(("schema", "case_id", "ran_at", "framework", "reason", "nvdash_version"), _TEXT),
    **dict.fromkeys(("release", "arch", "gpu"), _OPTIONAL),
    **dict.fromkeys(
        ("question", "environment", "requested", "resolved", "observed", "cache", "scope", "timings"), _OBJECT
    ),
    **dict.fromkeys(("kernels", "launches", "numbers", "phases", "attempts"), _objects),
    **dict.fromkeys(("not_tested", "log"), _texts),
    "engine": _one_of(ENGINES),
    "verdict": _one_of(VERDICTS),
    "layer": lambda item: None if item is None or item in LAYERS else f"null or one of {', '.join(LAYERS)}",
    "stages": _stages,
}
REQUIRED = frozenset(_RULES) - {"nvdash_version", "schema"}


def _check(key: str, item: Any, where: str) -> None:
    if expected := _RULES[key](item):
        found = f"got {item[:60]!r}" if isinstance(item, str) else f"got {type(item).__name__}"
        raise FileRefused(where, expected, found)
