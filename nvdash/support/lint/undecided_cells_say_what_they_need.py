"""An unknown that is written down says what would decide it."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Unknown without a reason is left out of the file: no statement says the same."""
    for statement in rules.all_statements():
        if statement.verdict == "unknown" and not (statement.needs or statement.reason):
            yield statement.where, f"{statement.id} is unknown and does not say what would decide it"
