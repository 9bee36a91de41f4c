"""One backend that is valid for all four configurations, or a sentence that says there is none."""

from collections.abc import Mapping, Sequence

from nvdash.planner.values import CELLS, LABELS, Candidate

VALID = ("validated", "expected", "conditional")
RUNNABLE = (*VALID, "unknown")
"""An unknown is no refusal: its script is written and says that nobody has seen it run."""


def choose(candidates: Mapping[str, Sequence[Candidate]]) -> tuple[str | None, str]:
    """The backend for the experiment and why; the one with the most valid cells when none takes all four."""
    if not candidates:
        return None, "No attention backend of this release is known, so no experiment can be planned."
    best = max(candidates, key=lambda name: (_count(candidates[name], VALID), _count(candidates[name], RUNNABLE)))
    rows = candidates[best]
    if _count(rows, VALID) == len(CELLS):
        return best, f"{best} is valid for all four configurations."
    if not _count(rows, RUNNABLE):
        return None, "No backend runs any of the four configurations here."
    if _count(rows, RUNNABLE) == len(CELLS):
        open_cells = ", ".join(LABELS[row.cell] for row in rows if row.verdict not in VALID)
        return best, f"No backend is known to be valid for all four; {best} refuses none, unknown: {open_cells}."
    empty = ", ".join(LABELS[row.cell] for row in rows if row.verdict not in RUNNABLE)
    return best, f"No backend is valid for all four configurations; with {best} these stay empty: {empty}."


def _count(rows: Sequence[Candidate], verdicts: Sequence[str]) -> int:
    return sum(row.verdict in verdicts for row in rows)
