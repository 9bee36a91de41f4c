"""Every name in a condition exists on its axis."""

from collections.abc import Iterator

from nvdash.errors import did_you_mean
from nvdash.readers.matrix import Matrix, Rules
from nvdash.readers.statements import Statement

NAMED_AXES = ("arch", "kind", "graphs", "checkpoint_kv", "model_dtype", "weights", "kv_cache_dtype")


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """A misspelt name would silently match nothing; axes.yaml has them all."""
    axes = matrix.axes()
    for statement in rules.all_statements():
        for axis in NAMED_AXES:
            known = axes.get(axis, {})
            yield from _unknown_names(statement, axis, known)
        for assumption in statement.assumes:
            if assumption not in axes.get("assumptions", {}):
                hint = did_you_mean(assumption, axes.get("assumptions", {}))
                yield statement.where, f"{statement.id} assumes {assumption}, which axes.yaml does not explain {hint}"


def _unknown_names(statement: Statement, axis: str, known: dict[str, str]) -> Iterator[tuple[str, str]]:
    limit = statement.limits.get(axis)
    if limit is None:
        return
    for name in sorted(map(str, (limit.any_of or frozenset()) | limit.none_of)):
        if name not in known:
            yield (
                statement.where,
                f"{statement.id}: {axis} {name} is not in axes.yaml {did_you_mean(name, known)}".rstrip(),
            )
