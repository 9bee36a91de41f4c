"""Reads the header of a safetensors file: names, types, shapes and offsets, and not one weight.

A header is hostile until it is checked: its length, its JSON, every type and shape, and that the tensors fill the
file without gaps or overlaps.
"""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from nvdash.errors import UsageError

MAX_HEADER_BYTES = 100_000_000
"""The limit of the format's own library."""
MAX_TENSORS = 2_000_000
MAX_DIMENSIONS = 16
_NAMES_BY_BITS = {
    4: ("F4",),
    6: ("F6_E2M3", "F6_E3M2"),
    8: ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"),
    16: ("I16", "U16", "F16", "BF16"),
    32: ("I32", "U32", "F32"),
    64: ("I64", "U64", "F64", "C64"),
}
DTYPE_BITS = {name: bits for bits, names in _NAMES_BY_BITS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One stored tensor: what it is called and what it takes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored_bytes: int


def read_header(path: Path) -> tuple[Tensor, ...]:
    """The tensors of one file, from its header; refuses a header that does not describe this file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return parse_header(file, size, path.name)
    except OSError as error:
        raise UsageError(path.name, "a readable safetensors file", error.strerror or "it cannot be read") from error


def parse_header(file: BinaryIO, size: int, where: str) -> tuple[Tensor, ...]:
    """The tensors that a header declares, given the size of the whole file."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > size - 8:
        found = f"a header of {length:,} bytes in a file of {size:,}"
        raise UsageError(where, "a safetensors header inside the file", found, "the file is cut off or no safetensors")
    if length > MAX_HEADER_BYTES:
        raise UsageError(where, f"a header of at most {MAX_HEADER_BYTES:,} bytes", f"found {length:,}")
    entries = _json(file.read(length), where)
    entries.pop("__metadata__", None)
    if len(entries) > MAX_TENSORS:
        raise UsageError(where, f"at most {MAX_TENSORS:,} tensors", f"found {len(entries):,}")
    spans = [(*_offsets(entry, where, name), _tensor(entry, where, name)) for name, entry in entries.items()]
    return _filling(sorted(spans, key=lambda span: span[:2]), size - 8 - length, where)


def _json(content: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(where, "a JSON header", f"found {str(error)[:120]}") from error
    if not isinstance(value, dict):
        raise UsageError(where, "a JSON object as header", f"found a {type(value).__name__}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice in one object")
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _offsets(entry: Any, where: str, name: str) -> tuple[int, int]:
    span = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(span, list) or len(span) != 2 or not all(map(_is_count, span)) or span[0] > span[1]:
        raise UsageError(f"{where} {name[:120]}", "data_offsets as a rising pair", f"found {str(span)[:80]}")
    return span[0], span[1]


def _tensor(entry: dict[str, Any], where: str, name: str) -> Tensor:
    dtype, shape, place = entry.get("dtype"), entry.get("shape"), f"{where} {name[:120]}"
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise UsageError(place, f"a dtype among {', '.join(DTYPE_BITS)}", f"found {str(dtype)[:40]}")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_count, shape)):
        raise UsageError(place, "a shape of whole numbers", f"found {str(shape)[:80]}")
    begin, end = entry["data_offsets"]
    expected = -(-prod(shape) * DTYPE_BITS[dtype] // 8)
    if end - begin != expected:
        found = f"found {end - begin:,} in data_offsets"
        raise UsageError(place, f"{expected:,} bytes for {dtype} of shape {str(shape)[:80]}", found)
    return Tensor(name, dtype, tuple(shape), expected)


def _filling(spans: list[tuple[int, int, Tensor]], size: int, where: str) -> tuple[Tensor, ...]:
    """The tensors in file order; together they fill the data, without a gap or an overlap."""
    position = 0
    for begin, end, tensor in spans:
        if begin != position:
            kind = "an overlap" if begin < position else "a gap"
            place = f"{where} {tensor.name[:120]}"
            raise UsageError(place, f"data at byte {position:,}", f"found {kind}: it begins at {begin:,}")
        position = end
    if position != size:
        raise UsageError(where, f"tensors that fill {size:,} bytes", f"they end at {position:,}")
    return tuple(tensor for _, _, tensor in spans)
