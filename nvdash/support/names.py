"""The names that the statements of a release use: cache dtypes and architectures."""

from nvdash.readers.matrix import Matrix
from nvdash.readers.statements import Condition, Statement
from nvdash.support.axes import CACHE_AXIS
from nvdash.support.view import view


def cache_dtypes(matrix: Matrix, framework: str, release: str) -> list[str]:
    """Every flag word the release accepts, as far as its statements name them, in the order of axes.yaml."""
    rules = matrix.rules(framework)
    known = rules.release(release)
    if known is None or not known.is_read:
        return []
    here = view(rules, release)
    statements = here.statements
    declared = next(map(_values, here.flag_words), None)
    words = declared or {"auto", *(name for item in statements for name in _named(item.limits.get(CACHE_AXIS)))}
    order = list(matrix.axes().get(CACHE_AXIS, {}))
    return sorted(words, key=lambda word: (order.index(word) if word in order else len(order), word))


def archs(matrix: Matrix, framework: str, release: str) -> list[str]:
    """Every NVIDIA architecture that the statements of a release name, in the order of axes.yaml."""
    rules = matrix.rules(framework)
    known = rules.release(release)
    if known is None or not known.is_read:
        return []
    named = {name for item in view(rules, release).statements for name in _named(item.limits.get("arch"))}
    return [name for name in matrix.axes().get("arch", {}) if name in named and name.startswith("sm")]


def _values(item: Statement) -> set[str]:
    return set(map(str, item.when[0].none_of))


def _named(limit: Condition | None) -> list[str]:
    return sorted(map(str, limit.any_of)) if limit and limit.any_of else []
