"""Every verdict but unknown can be looked up, at the level it claims."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules
from nvdash.readers.statements import Statement

NEEDED = {
    "source": ("file", "line"),
    "document": ("url",),
    "report": ("url",),
    "served": ("run",),
    "traced": ("run",),
    "none": (),
}


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Source needs file and line, a document or report a link, a run its id; `none` must be said."""
    for statement in rules.all_statements():
        if statement.verdict in (None, "unknown") or statement.evidence_level == "none":
            continue
        missing = [key for key in NEEDED[statement.evidence_level] if not _has(statement, key)]
        if missing:
            level = statement.evidence_level
            yield statement.where, f"{statement.id} claims evidence of level {level} without {' and '.join(missing)}"


def _has(statement: Statement, key: str) -> bool:
    evidence = statement.evidence or {}
    return key in evidence or (key == "url" and ("commit" in evidence or "file" in evidence))
