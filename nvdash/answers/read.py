"""What does this file say, and does the server store what was asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nvdash.readers.bundle import FileReading, read_file


def read(paths: Sequence[Path], sibling: Path | None = None) -> list[dict[str, Any]]:
    """One object per file, in the order given; a refused file says so and the others are still answered."""
    from nvdash.answers.stored import judged, yardstick

    rule = yardstick(sibling) if sibling else None
    return [_answer(read_file(path), rule, judged) for path in paths]


def _answer(reading: FileReading, rule: Any, judged: Any) -> dict[str, Any]:
    answer = reading.as_dict()
    if not reading.error and answer["server"].get("kv_cache_dtype_requested"):
        answer["server"] |= judged(answer["server"], rule)
    return answer
