"""Every refusal and trap names its layer and its reason."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """A user who is refused must learn by whom and why."""
    for statement in rules.all_statements():
        if statement.verdict in ("refused", "trap") and not (statement.layer and statement.reason):
            yield statement.where, f"{statement.id} says {statement.verdict} but not which layer and why"
