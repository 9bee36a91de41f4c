"""A backend that a curated statement names is one that the release's own lists or the extractor name."""

from collections.abc import Iterator

from nvdash.errors import did_you_mean
from nvdash.readers.matrix import Matrix, Rules
from nvdash.readers.statements import Statement


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Only where something was generated; without generated statements there is nothing to compare with."""
    statements = rules.all_statements()
    known = {name for item in statements if item.generated for name in _backends(item)}
    if not known:
        return
    for statement in statements:
        if statement.generated or statement.why:
            continue
        for name in sorted(_backends(statement) - known):
            yield (
                statement.where,
                f"{statement.id}: no generated statement names the backend {name} {did_you_mean(name, known)}",
            )


def _backends(statement: Statement) -> set[str]:
    limit = statement.limits.get("backend")
    return {*statement.order, *(map(str, limit.any_of) if limit and limit.any_of else ())}
