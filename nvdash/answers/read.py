"""What does this file say, and does the server store what was asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nvdash.readers.bundle import FileReading, read_file


def read(paths: Sequence[Path], sibling: Path | None = None) -> list[dict[str, Any]]:
    """One object per file, in the order given; a refused file says so and the others are still answered."""
    from nvdash.answers.stored import yardstick

    rule = yardstick(sibling) if sibling else None
    return [_answer(read_file(path), rule) for path in paths]


def _answer(reading: FileReading, rule: Any) -> dict[str, Any]:
    """The reading, with a verdict where a server was asked for a cache dtype."""
    from nvdash.answers.stored import judged

    answer = reading.as_dict()
    if not reading.error and answer["server"].get("kv_cache_dtype_requested"):
        answer["server"] |= judged(answer["server"], rule)
    return answer
