"""Evidence comes from a release that the statement covers and that was read."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """A line of another release proves nothing about this run, unless a person says why it does."""
    order = {release.name: number for number, release in enumerate(rules.releases)}
    for statement in rules.all_statements():
        cited = (statement.evidence or {}).get("release")
        if cited is None:
            continue
        if cited not in order:
            yield statement.where, f"{statement.id} cites {cited}, which releases.yaml does not have"
            continue
        end = order[statement.until] if statement.until else len(order)
        if not order[statement.since] <= order[cited] < end and not statement.why:
            yield statement.where, f"{statement.id} cites {cited}, which is outside its run, and does not say why"
