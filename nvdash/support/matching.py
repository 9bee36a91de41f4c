"""Three-valued matching: which statements apply to a question, which only may.

A statement applies when every axis it limits has a fitting value; it may apply when the question
leaves such an axis open. Everything that applies counts, the worst verdict wins.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nvdash.readers.statements import TRUTH_AXES, Condition, Statement
from nvdash.support.axes import Values
from nvdash.support.values import RANK


@dataclass(frozen=True, slots=True)
class Match:
    """A statement that applies, or may apply once the open conditions are known."""

    statement: Statement
    open: tuple[Condition, ...] = ()


def match(statement: Statement, values: Values) -> Match | None:
    """How the statement fits; None when it does not."""
    unknown: tuple[Condition, ...] = ()
    for condition in statement.when:
        value = values.get(condition.axis)
        if value is None:
            unknown += (condition,)
        elif not condition.admits(value):
            return None
    return Match(statement, unknown)


def matches(statements: Iterable[Statement], values: Values) -> list[Match]:
    """Every statement that applies or may apply."""
    return [fit for statement in statements if (fit := match(statement, values))]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of all matching statements, the one that decides it, and what is still open."""

    verdict: str
    statement: Statement | None = None
    wanted: tuple[Match, ...] = ()
    """Statements that would allow it, if their open conditions held."""
    feared: tuple[Match, ...] = ()
    """Statements that would spoil it, if their open conditions held."""

    def conditions(self) -> tuple[str, ...]:
        """What would have to be known or kept, in words."""
        stated = self.statement if self.statement and self.statement.verdict == "conditional" else None
        needs = (stated.needs or filter(None, (stated.reason,))) if stated and self.verdict == "conditional" else ()
        wanted = [" and ".join(map(str, fit.open)) for fit in self.wanted]
        feared = [avoid(fit.open) for fit in self.feared]
        return tuple(dict.fromkeys([*needs, *wanted, *feared]))


def outcome(fits: Iterable[Match], stage: str) -> Outcome:
    """The worst verdict of everything that applies to a stage."""
    deciding: Statement | None = None
    wanted: list[Match] = []
    feared: list[Match] = []
    for fit in fits:
        statement = fit.statement
        if stage not in statement.stage or statement.verdict is None:
            continue
        if not fit.open:
            deciding = statement if deciding is None or _weight(statement) < _weight(deciding) else deciding
        elif RANK[statement.verdict] >= RANK["conditional"]:
            wanted.append(fit)
        else:
            feared.append(fit)
    if deciding is None:
        return Outcome("conditional" if wanted else "unknown", wanted[0].statement if wanted else None, tuple(wanted))
    verdict = str(deciding.verdict)
    if feared and RANK[verdict] > RANK["conditional"]:
        return Outcome("conditional", deciding, feared=tuple(feared))
    return Outcome(verdict, deciding)


def avoid(conditions: tuple[Condition, ...]) -> str:
    """The opposite of some conditions, in words."""
    if len(conditions) > 1:
        return f"not ({' and '.join(map(str, conditions))})"
    only = conditions[0]
    if only.axis in TRUTH_AXES and only.any_of is not None and len(only.any_of) == 1:
        return f"{only.axis} {str(True not in only.any_of).lower()}"
    if only.none_of and only.low is None and only.high is None and only.multiple_of is None:
        return str(Condition(only.axis, only.none_of))
    if only.any_of is not None:
        return str(Condition(only.axis, None, only.any_of))
    return f"not ({only})"


_LAYER_ORDER = {"config": 0, "selector": 1, "constructor": 2, "forward": 3, "kernel": 4, "silent": 5}


def _weight(statement: Statement) -> tuple[int, int, int]:
    """Worst verdict first, then the layer that speaks first, then the most specific statement."""
    return RANK[str(statement.verdict)], _LAYER_ORDER.get(statement.layer or "", 9), -len(statement.when)
