"""Numbers as people read them."""

from typing import Any


def figure(value: Any) -> str:
    """A count in full with separators, a measure in six digits, an unknown as "not measured"."""
    if value is None:
        return "not measured"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{int(value):,}" if value == int(value) else f"{value:,.6g}"
