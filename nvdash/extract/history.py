"""What only several releases together can say: since when, until when, and what came before.

A finder writes `<first>`, `<before>` and `<last>` where a release belongs; here they are filled in from the
releases that were read. A release that was not read is never named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nvdash.extract.findings import Fact

Series = Mapping[str, Sequence[Fact]]
"""Facts by release, in release order."""

PLACEHOLDER = re.compile(r"<(first|before|last)>")


def reopened(series: Series) -> dict[str, list[Fact]]:
    """A series whose earlier facts were filled in before: where a later release leaves a place open, they do again."""
    open_values = {
        fact.fact: fact.value
        for facts in series.values()
        for fact in facts
        if isinstance(fact.value, str) and PLACEHOLDER.search(fact.value)
    }
    forms = {
        name: re.compile(".+".join(map(re.escape, PLACEHOLDER.split(value)[::2])) or ".+")
        for name, value in open_values.items()
    }

    def opened(fact: Fact) -> Fact:
        form = forms.get(fact.fact)
        filled = form is not None and isinstance(fact.value, str) and form.fullmatch(fact.value)
        return replace(fact, value=open_values[fact.fact]) if filled else fact

    return {release: [opened(fact) for fact in facts] for release, facts in series.items()}


def base(release: str) -> str:
    """A release without its post part: 0.5.5.post3 -> 0.5.5."""
    return re.sub(r"\.post\d+$", "", release)


def relate(series: Series, merge_posts: bool = False) -> dict[str, list[Fact]]:
    """The same facts with their releases filled in; `merge_posts` names 0.5.5 for 0.5.5.post3."""
    order = list(series)
    runs = _runs(series)
    filled: dict[str, list[Fact]] = {}
    for release in order:
        facts = []
        for fact in series[release]:
            if isinstance(fact.value, str) and PLACEHOLDER.search(fact.value):
                first, last = runs[fact.fact, release]
                names = _names(order, first, last, merge_posts)
                facts.append(replace(fact, value=_filled(fact.value, names)))
            else:
                facts.append(fact)
        filled[release] = facts
    return filled


def _filled(text: str, names: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: names[match[1]], text)


def _names(order: list[str], first: int, last: int, merge_posts: bool) -> dict[str, str]:
    named = [base(release) if merge_posts else release for release in order]
    return {
        "first": named[first],
        "last": named[last],
        "before": named[first - 1] if first else f"releases before {named[0]} not read",
    }


def _runs(series: Series) -> dict[tuple[str, str], tuple[int, int]]:
    """For each fact and release, the positions of the unbroken run of releases with the same unfilled value."""
    order = list(series)
    values: list[dict[str, Any]] = [{fact.fact: fact.value for fact in series[release]} for release in order]
    runs: dict[tuple[str, str], tuple[int, int]] = {}
    for name in {name for row in values for name in row}:
        start = 0
        for position, row in enumerate(values):
            if position == 0 or row.get(name) != values[position - 1].get(name):
                start = position
            if position + 1 == len(values) or values[position + 1].get(name) != row.get(name):
                for inside in range(start, position + 1):
                    runs[name, order[inside]] = (start, position)
    return runs


def becomes(series: Series, name: str, note: str) -> dict[str, list[Fact]]:
    """Add to a fact what it turns into next; `note` holds `<value>` and its first `<release>` that is no post one."""
    order = list(series)
    related = {release: list(facts) for release, facts in series.items()}
    following: tuple[Any, str] | None = None
    current: Any = None
    told = re.compile(" [(]" + re.escape(note).replace("<value>", ".+").replace("<release>", ".+") + "[)]$")
    for release in reversed(order):
        facts = related[release]
        for position, fact in enumerate(facts):
            if fact.fact != name:
                continue
            fact = replace(fact, value=told.sub("", str(fact.value)))
            if current is not None and fact.value != current[0]:
                following = current
            if base(release) == release or current is None or current[0] != fact.value:
                current = (fact.value, release)
            if following is not None:
                said = note.replace("<value>", str(following[0])).replace("<release>", following[1])
                facts[position] = replace(fact, value=f"{fact.value} ({said})")
    return related
