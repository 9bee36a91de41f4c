"""Checks the rows of a statement file: unknown keys, wrong types, unquoted versions, each with its place."""

from collections.abc import Iterator
from typing import Any

from nvdash.errors import NvdashError, did_you_mean
from nvdash.readers.statement_lines import line_problems
from nvdash.readers.statements import (
    AXES,
    KERNELS,
    LAYERS,
    LEVELS,
    NUMBER_AXES,
    PARTS,
    STAGES,
    TEXT_AXES,
    TRUTH_AXES,
    VERDICTS,
    listed,
)
from nvdash.readers.yaml_rows import Row, YamlError, kind_of

_SHARED = {"id", "kind", "when", "since", "until", "evidence", "evidence_level", "why", "source", "issues", "assumes"}
_VERDICT = {"verdict", "layer", "reason", "kernel", "compute", "path", "requires_flashinfer", "needs", "reports"}
KEYS = {
    "support": _SHARED | _VERDICT | {"stage", "kv_format", "warning", "decides"},
    "quant": _SHARED | _VERDICT | {"part", "warning"},
    "tag": _SHARED | {"stage", "kernel", "compute", "path", "kv_format", "requires_flashinfer", "reports", "warning"},
    "priority": _SHARED | {"stage", "order", "needs"},
    "resolve": _SHARED | {"axis", "becomes", "silent", "reason", "kv_format"},
    "default": _SHARED | {"name", "value"},
}
REQUIRED = {
    "support": {"verdict"},
    "quant": {"verdict"},
    "tag": set[str](),
    "priority": set[str](),
    "resolve": {"becomes"},
    "default": {"name", "value"},
}
_TEXTS = {"id", "kind", "reason", "path", "kv_format", "becomes", "name", "why", "source", "warning", "decides"}
_VERSIONS = {"since", "until"}
_WORDS = {
    "verdict": VERDICTS[:-1],
    "layer": LAYERS,
    "kernel": KERNELS,
    "evidence_level": LEVELS,
    "part": PARTS,
    "axis": ("kv_cache_dtype", "weights", "backend", "model_dtype"),
}
_LISTS = {"assumes", "needs", "order", "issues"}


def problems_of(row: Row, file: str) -> Iterator[NvdashError]:
    """Everything that is wrong with one row, each with its place."""
    kind = row.get("kind", "support")
    if not isinstance(kind, str) or kind not in KEYS:
        yield _problem(row, file, "kind", " or ".join(KEYS), kind_of(kind), did_you_mean(str(kind), KEYS))
        return
    for key in row:
        if key not in KEYS[kind]:
            hint = did_you_mean(key, KEYS[kind])
            yield _problem(row, file, key, f"a key of a {kind} statement", "an unknown one", hint)
    for key in sorted({"id", "since", "when", *REQUIRED[kind]} - row.keys()):
        yield YamlError(f"{file}:{row.line} {row.get('id', 'statement')}.{key}", "this key", "none")
    if kind == "priority" and ("order" in row) == ("needs" in row):
        place = f"{file}:{row.line} {row.get('id', 'statement')}.order"
        yield YamlError(place, "either order or needs", "both or none")
    for key, value in row.items():
        if key in KEYS[kind]:
            yield from _value_problems(row, file, key, value)


def _value_problems(row: Row, file: str, key: str, value: Any) -> Iterator[NvdashError]:
    if key in _VERSIONS:
        yield from version_problems(row, file, key)
    elif key in _TEXTS and not (isinstance(value, str) and value):
        yield _problem(row, file, key, "text", kind_of(value))
    elif key in _WORDS and value not in _WORDS[key]:
        hint = "validated comes from observations, never from a file" if value == "validated" else ""
        yield _problem(row, file, key, " or ".join(_WORDS[key]), kind_of(value), hint)
    elif key in _LISTS and not _is_texts(value):
        yield _problem(row, file, key, "a list of texts", kind_of(value))
    elif key == "stage" and not (_is_texts(listed(value)) and set(listed(value)) <= set(STAGES)):
        yield _problem(row, file, key, f"stages out of {', '.join(STAGES)}", kind_of(value))
    elif key in ("compute", "reports", "evidence", "when", "requires_flashinfer"):
        yield from _shape_problems(row, file, key, value)


def _shape_problems(row: Row, file: str, key: str, value: Any) -> Iterator[NvdashError]:
    if key == "requires_flashinfer":
        if not (isinstance(value, bool) or (isinstance(value, str) and value)):
            yield _problem(row, file, key, "a FlashInfer path, true or false", kind_of(value))
    elif key == "reports":
        if not (isinstance(value, list) and all(isinstance(item, Row) and "url" in item for item in value)):
            yield _problem(row, file, key, "a list of {url, claim, level}", kind_of(value))
    elif not isinstance(value, Row):
        yield _problem(row, file, key, "a mapping", kind_of(value))
    elif key == "when":
        for axis in value:
            yield from _condition_problems(value, file, axis, f"{row.get('id', '')}.when")
    elif key == "evidence":
        yield from _evidence_problems(row, value, file)


def _evidence_problems(row: Row, evidence: Row, file: str) -> Iterator[NvdashError]:
    allowed = {"release", "file", "line", "lines", "url", "commit", "run"}
    for key in evidence.keys() - allowed:
        yield _problem(evidence, file, key, "release, file, line, lines, url, commit or run", "an unknown key", row=row)
    if "release" in evidence:
        yield from version_problems(evidence, file, "release", f"{row.get('id', '')}.evidence.release")
    line = evidence.get("line")
    if line is not None and (not isinstance(line, int) or line < 1):
        yield _problem(evidence, file, "line", "a line number from 1", kind_of(line), row=row)
    if "lines" in evidence:
        yield from line_problems(evidence, file, _dotted(row.get("id"), "evidence"))


def version_problems(row: Row, file: str, key: str, name: str = "") -> Iterator[NvdashError]:
    """A version that is not quoted text: YAML would read 0.10 as 0.1."""
    value = row[key]
    if isinstance(value, str) and value:
        return
    text = row.texts.get(key, "")
    reads = f"; YAML reads {text} as {value}" if isinstance(value, float) else ""
    hint = f'write "{text}"{reads}' if text else ""
    place = f"{file}:{row.lines[key]} {name or _dotted(row.get('id'), key)}"
    yield YamlError(place, "a quoted version", f"got {kind_of(value)}", hint)


def _condition_problems(when: Row, file: str, axis: str, name: str) -> Iterator[NvdashError]:
    place = f"{file}:{when.lines[axis]} {name}.{axis}"
    if axis not in AXES:
        yield YamlError(place, "an axis", "an unknown one", did_you_mean(axis, AXES))
        return
    limit = when[axis]
    if not isinstance(limit, Row):
        yield from _axis_value_problems(place, axis, listed(limit))
        return
    for key, value in limit.items():
        if key == "not":
            yield from _axis_value_problems(place, axis, listed(value))
        elif key not in ("min", "max", "multiple_of") or axis not in NUMBER_AXES:
            yield YamlError(place, "not (and min, max, multiple_of for numbers)", f"got {key}")
        elif not isinstance(value, int) or isinstance(value, bool):
            yield YamlError(place, "a whole number", f"got {kind_of(value)}")


def _axis_value_problems(place: str, axis: str, values: list[Any]) -> Iterator[NvdashError]:
    if not values:
        yield YamlError(place, "at least one value", "got an empty list")
    expected: type = str if axis in TEXT_AXES else bool if axis in TRUTH_AXES else int
    for value in values:
        if type(value) is not expected:
            words = {str: "text", bool: "true or false", int: "a whole number"}
            yield YamlError(place, words[expected], f"got {kind_of(value)}")


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


def _problem(
    holder: Row, file: str, key: str, expected: str, found: str, hint: str = "", row: Row | None = None
) -> YamlError:
    name = _dotted((row or holder).get("id"), "evidence" if row else "", key)
    return YamlError(f"{file}:{holder.lines[key]} {name}", expected, f"got {found}", hint)


def _dotted(*names: Any) -> str:
    return ".".join(str(name) for name in names if name)
