"""No run spans a release that was not read."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """A run must end before an unread release and start again after it; its own ends must be read."""
    order = {release.name: number for number, release in enumerate(rules.releases)}
    newest = max((number for number, release in enumerate(rules.releases) if release.is_read), default=-1)
    for statement in rules.all_statements():
        end = order[statement.until] if statement.until else newest + 1
        covered = rules.releases[order[statement.since] : end]
        unread = next((release.name for release in covered if not release.is_read), None)
        if unread:
            yield statement.where, f"{statement.id} spans {unread}, of which nothing was read"
