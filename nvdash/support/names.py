"""The names that the statements of a release use: cache dtypes and architectures."""

from nvdash.readers.matrix import Matrix
from nvdash.readers.statements import Condition, Statement
from nvdash.support.view import view

CACHE_AXIS = "kv_cache_dtype"


def cache_dtypes(matrix: Matrix, framework: str, release: str) -> list[str]:
    """Every flag word the release accepts, as far as its statements name them, in their order."""
    rules = matrix.rules(framework)
    known = rules.release(release)
    if known is None or not known.is_read:
        return []
    declared = [_values(item) for item in view(rules, release).statements if _declares_words(item)]
    if declared:
        return list(declared[0])
    words: dict[str, None] = {"auto": None}
    for statement in view(rules, release).statements:
        words |= dict.fromkeys(_named(statement.limits.get(CACHE_AXIS)))
    return list(words)


def archs(matrix: Matrix, framework: str, release: str) -> list[str]:
    """Every NVIDIA architecture that the statements of a release name, in the order of axes.yaml."""
    rules = matrix.rules(framework)
    known = rules.release(release)
    if known is None or not known.is_read:
        return []
    named = {name for item in view(rules, release).statements for name in _named(item.limits.get("arch"))}
    return [name for name in matrix.axes().get("arch", {}) if name in named and name.startswith("sm")]


def _declares_words(item: Statement) -> bool:
    """A refusal of every word but the listed ones: the release's own list of values."""
    alone = [condition.axis for condition in item.when] == [CACHE_AXIS]
    return alone and item.verdict == "refused" and item.layer == "config" and bool(item.when[0].none_of)


def _values(item: Statement) -> list[str]:
    return sorted(map(str, item.when[0].none_of))


def _named(limit: Condition | None) -> list[str]:
    return sorted(map(str, limit.any_of)) if limit and limit.any_of else []
