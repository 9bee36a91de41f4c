"""Reads `gpus.yaml` and `models.yaml` strictly: unknown keys, missing keys and wrong types are refused together."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, Problems, did_you_mean
from nvdash.readers.yaml_rows import Row, YamlError, kind_of, read_yaml


def text(value: Any) -> bool:
    """Whether this is text with something in it."""
    return isinstance(value, str) and bool(value.strip())


def texts(value: Any) -> bool:
    """Whether this is a list of text."""
    return isinstance(value, list) and all(map(text, value))


def flag(value: Any) -> bool:
    """Whether this is true or false."""
    return isinstance(value, bool)


def amount(value: Any) -> bool:
    """Whether this is a number above zero."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def count(value: Any) -> bool:
    """Whether this is a whole number above zero."""
    return isinstance(value, int) and amount(value)


def span(value: Any) -> bool:
    """Whether this is a whole number above zero, or a rising pair of them."""
    pair = isinstance(value, list) and len(value) == 2 and all(map(count, value))
    return count(value) or (pair and value[0] <= value[1])


def mapping(value: Any) -> bool:
    """Whether this is a mapping."""
    return isinstance(value, dict)


def rows(value: Any) -> bool:
    """Whether this is a list of mappings."""
    return isinstance(value, list) and all(map(mapping, value))


KIND_NAMES: dict[Callable[[Any], bool], str] = {
    text: "text",
    texts: "a list of text",
    flag: "true or false",
    amount: "a number above zero",
    count: "a whole number above zero",
    span: "a whole number above zero or a rising pair",
    mapping: "a mapping",
    rows: "a list of mappings",
}
Keys = Mapping[str, Callable[[Any], bool]]
GPU_REQUIRED: Keys = {"id": text, "name": text, "vendor": text, "arch": text, "memory": mapping, "confidence": text}
GPU_OPTIONAL: Keys = {
    "family": text,
    "compute_capability": text,
    "torch_capability": text,
    "aliases": texts,
    "device_names": texts,
    "bandwidth_gbs": amount,
    "dense_tflops": mapping,
    "native_fp4_mma": flag,
    "fp8_format": text,
    "fp4_format": text,
    "sm_count": count,
    "recall_fields": texts,
    "conflict": text,
    "notes": text,
    "sources": texts,
}
MEMORY_OPTIONAL: Keys = {
    "vendor_gb": amount,
    "physical_gb": amount,
    "reported_mib": count,
    "reported_source": text,
    "reported_source_kind": text,
    "engine_mib": span,
    "engine_source": text,
    "seen_gib": amount,
    "dies": count,
    "unified": flag,
    "type": text,
}
MODEL_REQUIRED: Keys = {"name": text, "config": mapping, "source": text}
MODEL_OPTIONAL: Keys = {
    "base": text,
    "aliases": texts,
    "parameters": count,
    "parameters_source": text,
    "checkpoints": rows,
    "notes": text,
}
CHECKPOINT_REQUIRED: Keys = {"weights": text}
CHECKPOINT_OPTIONAL: Keys = {
    "repository": text,
    "method": text,
    "activations": text,
    "kv_cache_scheme": text,
    "wide_layers": texts,
    "stored_bytes": count,
    "group_size": count,
    "source": text,
    "notes": text,
}
Rows = dict[str, dict[str, Any]]


def gpu_file(path: Path) -> tuple[Rows, dict[str, list[str]]]:
    """The products of one file by id, and its ambiguous names."""
    whole = read_yaml(path)
    problems = list(_shape(whole, "", {"gpus": rows}, {"ambiguous": mapping}))
    _stop(path, problems)
    for number, row in enumerate(whole["gpus"]):
        problems += _shape(row, f"gpus[{number}]", GPU_REQUIRED, GPU_OPTIONAL)
        if mapping(row.get("memory")):
            problems += _memory(row["memory"], f"gpus[{number}].memory")
    _stop(path, problems)
    by_id = _named(path, whole["gpus"], "id")
    ambiguous = whole.get("ambiguous", {})
    _stop(path, _strangers(ambiguous, by_id))
    return by_id, ambiguous


def model_file(path: Path) -> Rows:
    """The models of one file by name."""
    whole = read_yaml(path)
    problems = list(_shape(whole, "", {"models": rows}, {}))
    _stop(path, problems)
    for number, row in enumerate(whole["models"]):
        problems += _shape(row, f"models[{number}]", MODEL_REQUIRED, MODEL_OPTIONAL)
        listed = row.get("checkpoints", [])
        for place, entry in enumerate(listed if rows(listed) else ()):
            where = f"models[{number}].checkpoints[{place}]"
            problems += _shape(entry, where, CHECKPOINT_REQUIRED, CHECKPOINT_OPTIONAL)
    _stop(path, problems)
    return _named(path, whole["models"], "name")


def _shape(row: Any, where: str, required: Keys, optional: Keys) -> Iterator[YamlError]:
    """What is wrong with the keys of one mapping."""
    if not isinstance(row, Row):
        yield YamlError(where or "the file", "a mapping", f"got {kind_of(row)}")
        return
    known = {**required, **optional}
    for key, value in row.items():
        place = f":{row.lines[key]} {where}.{key}".replace(" .", " ")
        if key not in known:
            yield YamlError(place, "a known key", f"got {key!r}", did_you_mean(key, known))
        elif not known[key](value):
            yield YamlError(place, KIND_NAMES[known[key]], f"got {kind_of(value)}")
    for key in required.keys() - row.keys():
        yield YamlError(f":{row.line} {where}".rstrip(), f"the key {key}", "it is missing")


def _memory(memory: Any, where: str) -> Iterator[YamlError]:
    yield from _shape(memory, where, {}, MEMORY_OPTIONAL)
    for figure, source in (("engine_mib", "engine_source"), ("reported_mib", "reported_source")):
        if figure in memory and source not in memory:
            yield YamlError(f":{memory.line} {where}", f"{source} beside {figure}", "a figure without a source")


def _strangers(ambiguous: Mapping[str, Any], by_id: Rows) -> list[YamlError]:
    problems = []
    for name, ids in ambiguous.items():
        missing = [id_ for id_ in ids if id_ not in by_id] if texts(ids) else ["anything but a list of ids"]
        if missing:
            problems.append(YamlError(f" ambiguous.{name}", "ids of this file", f"got {', '.join(missing)}"))
    return problems


def _named(path: Path, listed: list[Row], key: str) -> Rows:
    """The rows by name; a second row of one name is refused."""
    named: Rows = {}
    for row in listed:
        if row[key] in named:
            raise YamlError(f"{path}:{row.lines[key]} {key}", "each name once in a file", f"a second {row[key]!r}")
        named[row[key]] = dict(row)
    return named


def _stop(path: Path, problems: list[YamlError]) -> None:
    """Raise every problem found so far, with the file in front of its place."""
    if problems:
        placed = [YamlError(f"{path}{each.where}", each.expected, each.found, each.hint) for each in problems]
        raise Problems(str(path), list[NvdashError](placed))
