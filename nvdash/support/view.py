"""The statements of one release, sorted so that a question reads only those about its backend.

A view can be narrowed by values that many questions share; what is left has fewer conditions.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from nvdash.readers.matrix import Rules
from nvdash.readers.statements import Condition, Statement
from nvdash.support.axes import CACHE_AXIS, Values
from nvdash.support.matching import Match, matches
from nvdash.support.values import StageVerdict

BACKEND = "backend"


class Replacements:
    """Rules that replace a value; what they say is remembered by the values of the axes that they limit."""

    def __init__(self, rules: Iterable[Statement]) -> None:
        self._rules = tuple(sorted(rules, key=lambda rule: -len(rule.when)))
        self._axes = tuple({axis: None for rule in self._rules for axis in rule.limits})
        self._said: dict[tuple[object, ...], Statement | None] = {}

    def of(self, values: Values) -> Statement | None:
        """The most specific rule that applies; one that only may apply says nothing."""
        key = tuple(map(values.get, self._axes))
        if key not in self._said:
            certain = (fit.statement for fit in matches(self._rules, values) if not fit.open)
            self._said[key] = next(certain, None)
        return self._said[key]


class View:
    """Verdicts by backend, and the statements that choose, resolve, tag and weigh."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        every = tuple(statements)
        decided = {statement.decides for statement in every}
        self.statements = tuple(statement for statement in every if statement.id not in decided)
        self.priority = self._of_kind("priority")
        self.resolve = self._of_kind("resolve")
        self.tag = self._of_kind("tag")
        self.quant = self._of_kind("quant")
        support = self._of_kind("support")
        self.flag_words = tuple(item for item in support if declares_words(item))
        """The refusals of every word that the release's flag does not list; they are about the word that was asked."""
        self._support = tuple(item for item in support if item not in self.flag_words)
        weighing = [*self.quant, *(item for item in self.tag if "weights" in item.stage)]
        limited = {axis for item in weighing for axis in item.limits}
        self.weight_axes = ("weights", "arch", "experts", *sorted(limited - {"weights", "arch"}))
        """The axes that the weights stage depends on."""
        self.weight_stages: dict[tuple[object, ...], StageVerdict] = {}
        """The weights stages that were judged so far."""
        self.judged: dict[tuple[object, ...], tuple[StageVerdict, str | bool]] = {}
        """What sets of statements say of a backend's stages, as far as it was asked."""
        self.dtype_rules = Replacements(item for item in self.resolve if item.axis == "model_dtype")
        """What becomes of the model's own type."""
        cache_rules = [item for item in self.resolve if item.axis == CACHE_AXIS]
        self.cache_rules = Replacements(item for item in cache_rules if BACKEND not in item.limits)
        self.stored_rules = Replacements(item for item in cache_rules if BACKEND in item.limits)
        """What a chosen backend stores instead of the resolved dtype."""
        general = [*self.flag_words, *(item for item in self._support if BACKEND not in item.limits)]
        self.general_axes = tuple({axis: None for item in general for axis in item.limits})
        """The axes that a refusal whatever the backend depends on."""
        self.general: dict[tuple[object, ...], StageVerdict | None] = {}
        """The refusals whatever the backend that were judged so far."""
        self._by_backend: dict[str | None, tuple[Statement, ...]] = {}
        self._tags_of: dict[str, tuple[Statement, ...]] = {}

    def _of_kind(self, kind: str) -> tuple[Statement, ...]:
        return tuple(statement for statement in self.statements if statement.kind == kind)

    @property
    def backends(self) -> list[str]:
        """Every backend that a verdict or a priority list of this release names, in file order."""
        names: dict[str, None] = {}
        for statement in (*self.priority, *self._support):
            limit = statement.limits.get(BACKEND)
            names |= dict.fromkeys(
                [*statement.order, *(map(str, sorted(limit.any_of)) if limit and limit.any_of else ())]
            )
        return list(names)

    def support(self, backend: str | None) -> tuple[Statement, ...]:
        """The verdicts that speak about this backend; None asks for those that speak about every backend."""
        if backend not in self._by_backend:
            self._by_backend[backend] = tuple(item for item in self._support if _speaks_of(item, backend))
        return self._by_backend[backend]

    def tags(self, backend: str) -> tuple[Statement, ...]:
        """The tags that may apply to this backend: what a person wrote first, then the most specific first."""
        if backend not in self._tags_of:
            tags = [item for item in self.tag if _speaks_of(item, backend)]
            self._tags_of[backend] = tuple(sorted(tags, key=lambda item: (item.generated, -len(item.when))))
        return self._tags_of[backend]

    def matches(self, backend: str | None, values: Values) -> list[Match]:
        """Every verdict about this backend that applies or may apply."""
        return matches(self.support(backend), {**values, BACKEND: backend} if backend else values)

    def narrowed(self, values: Values) -> "View":
        """The statements that these values leave possible, without the conditions they settle."""
        return View(left for statement in self.statements if (left := _narrowed(statement, values)))


@lru_cache(maxsize=128)
def view(rules: Rules, release: str) -> View:
    """The view of one release; built once per loaded rules."""
    return View(rules.statements(release))


def declares_words(item: Statement) -> bool:
    """A refusal of every word but the listed ones: the release's own list of values."""
    alone = [condition.axis for condition in item.when] == [CACHE_AXIS]
    return alone and item.verdict == "refused" and item.layer == "config" and bool(item.when[0].none_of)


def _speaks_of(statement: Statement, backend: str | None) -> bool:
    limit = statement.limits.get(BACKEND)
    if limit is None:
        return True
    return backend is not None and limit.admits(backend)


def _narrowed(statement: Statement, values: Values) -> Statement | None:
    left: tuple[Condition, ...] = ()
    for condition in statement.when:
        value = values.get(condition.axis)
        if value is None:
            left += (condition,)
        elif not condition.admits(value):
            return None
    if len(left) == len(statement.when):
        return statement
    return replace(statement, when=left, limits={condition.axis: condition for condition in left})
