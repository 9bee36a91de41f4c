"""What does this file say, and does the server store what was asked for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nvdash.readers.bundle import FileReading, read_file


def read(
    paths: Sequence[Path], sibling: Path | None = None, mapping: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """One object per file, in the order given; a refused file says so and the others are still answered."""
    from nvdash.answers.mapping import read_tables
    from nvdash.answers.stored import yardstick

    rule = yardstick(sibling) if sibling else None
    readings = read_tables([read_file(path) for path in paths], mapping or {})
    return [_answer(reading, rule) for reading in readings]


def _answer(reading: FileReading, rule: Any) -> dict[str, Any]:
    """The reading, with a verdict where a server was asked for a cache dtype."""
    from nvdash.answers.stored import judged

    answer = reading.as_dict()
    if not reading.error and answer["server"].get("kv_cache_dtype_requested"):
        answer["server"] |= judged(answer["server"], rule)
    return answer
