"""Which runs are beaten by no other: throughput against interactivity, capacity against speed."""

from collections.abc import Iterable, Mapping
from typing import Any

VIEWS: dict[str, tuple[str, str]] = {
    "throughput_interactivity": ("output_tok_s_per_user", "output_tok_s"),
    "capacity_speed": ("kv_tokens", "output_tok_s"),
}
"""The two axes of each view; more is better on both."""


def interactivity(row: Mapping[str, Any]) -> float | None:
    """Output tokens per second that one user sees: stated, or one over the mean time per output token."""
    stated = row.get("output_tok_s_per_user")
    if stated is not None:
        return float(stated)
    tpot = row.get("tpot_mean_ms")
    return 1000.0 / float(tpot) if tpot else None


def points(rows: Iterable[Mapping[str, Any]], view: str) -> list[dict[str, Any]]:
    """Rows as points of a view, each saying whether it lies on the front of its own rows."""
    across, up = VIEWS[view]
    placed = []
    for row in rows:
        x = interactivity(row) if across == "output_tok_s_per_user" else row.get(across)
        y = row.get(up)
        if x is not None and y is not None:
            placed.append({**row, "x": float(x), "y": float(y), "on_front": False})
    best = float("-inf")
    for point in sorted(placed, key=lambda point: (-point["x"], -point["y"])):
        if point["y"] > best:
            point["on_front"], best = True, point["y"]
    return placed
