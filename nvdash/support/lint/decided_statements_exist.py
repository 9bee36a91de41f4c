"""A statement that stands in another's place names a generated one, undecided, of its own releases."""

from collections.abc import Iterator

from nvdash.errors import did_you_mean
from nvdash.readers.matrix import Matrix, Rules
from nvdash.readers.statements import Statement


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """An id that a new generation no longer has would leave both the old unknown and the answer standing."""
    every = rules.all_statements()
    undecided = {item.id: item for item in every if item.generated and item.verdict == "unknown"}
    order = {release.name: number for number, release in enumerate(rules.releases)}
    for statement in every:
        if statement.decides is None:
            continue
        stood = undecided.get(statement.decides)
        if stood is None:
            hint = did_you_mean(statement.decides, undecided)
            yield (
                statement.where,
                f"{statement.id} decides {statement.decides}, which is no undecided generated one {hint}".rstrip(),
            )
        elif not _meet(statement, stood, order):
            yield statement.where, f"{statement.id} decides {stood.id}, which holds in none of its releases"


def _meet(one: Statement, other: Statement, order: dict[str, int]) -> bool:
    """Whether two runs share a release; a release that is not listed is another check's finding."""
    ends = [order.get(item.until, len(order)) if item.until else len(order) for item in (one, other)]
    starts = [order.get(item.since, 0) for item in (one, other)]
    return max(starts) < min(ends)
