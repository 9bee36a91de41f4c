"""Statements of one layer and reason with equal conditions do not overlap in releases."""

from collections.abc import Iterator
from itertools import pairwise

from nvdash.readers.matrix import Matrix, Rules


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Two statements about the same thing must be one, or meet end to start."""
    order = {release.name: number for number, release in enumerate(rules.releases)}
    alike: dict[object, list[tuple[int, int, str, str]]] = {}
    for statement in rules.all_statements():
        end = order[statement.until] if statement.until else len(order)
        kind = (statement.kind, statement.part, statement.name, statement.axis, statement.layer, statement.reason)
        about = (kind, frozenset(statement.when))
        for stage in statement.stage:
            alike.setdefault((about, stage), []).append((order[statement.since], end, statement.id, statement.where))
    told = set()
    for runs in alike.values():
        for (_, end, first, _), (start, _, second, where) in pairwise(sorted(runs)):
            if start < end and (first, second) not in told:
                told.add((first, second))
                yield where, f"{second} overlaps {first}, which has the same conditions"
