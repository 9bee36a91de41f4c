"""Which run is it: a hash over what its producer measured, never over what an uploader typed.

Two files that hold the same run (a sweep's summary and its single runs, one file submitted twice) give one id.
"""

import json
import math
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

SHOWN_DIGITS = 8
NOT_MEASURED = frozenset({"format", "label", "tag", "run_index"})
"""What names the file or its reader, and may differ between two files of one run."""


def run_id(
    values: Mapping[str, Any], quality: Iterable[Mapping[str, Any]] = (), kernels: Iterable[Mapping[str, Any]] = ()
) -> str:
    """64 hex digits over the normalised values of one run as its own result file gives them."""
    measured = {name: _plain(value) for name, value in values.items() if value is not None and name not in NOT_MEASURED}
    parts: dict[str, Any] = {"values": measured}
    for name, rows in (("quality", quality), ("kernels", kernels)):
        listed = sorted(_text({k: _plain(v) for k, v in row.items() if v is not None}) for row in rows)
        if listed:
            parts[name] = listed
    return sha256(_text(parts).encode()).hexdigest()


def shown(identifier: str) -> str:
    """The id as people see it."""
    return identifier[:SHOWN_DIGITS]


def _plain(value: Any) -> Any:
    """4, 4.0 and -0.0 against 0 are one value; an unlimited rate is the word inf."""
    if isinstance(value, float):
        if math.isinf(value):
            return str(value)
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
