"""What a person wrote says why it is there and where it comes from."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """A curated statement without a reason cannot be reviewed, and nobody dares to delete it."""
    for statement in rules.all_statements():
        if not statement.generated and not (statement.why and statement.source):
            yield statement.where, f"{statement.id} was written by hand and does not say why and from what source"
