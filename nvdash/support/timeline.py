"""A model over every release: stretches with the same answer, uncertain ends marked.

A stretch that follows releases nobody read may have begun earlier, so its start is written `≤0.16.0`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from nvdash.readers.matrix import Matrix, Release
from nvdash.support.observations import Observation
from nvdash.support.values import Verdict
from nvdash.support.whole import verdict_of_all
from nvdash.targets import Combination

UNREAD = "not read"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive releases with one answer."""

    releases: tuple[str, ...]
    verdict: str
    layer: str | None
    backend: str | None
    reason: str | None
    evidence: dict[str, Any] | None
    start_uncertain: bool
    """Whether the releases before were not read, so that it may have begun earlier."""
    end_uncertain: bool
    """Whether nothing after it was read."""
    ran_on: tuple[str, ...] = ()

    @property
    def since(self) -> str:
        """The first release, with `≤` where it may have begun earlier."""
        return f"{'≤' if self.start_uncertain else ''}{self.releases[0]}"

    @property
    def label(self) -> str:
        """`≤0.13.0 to 0.14.0`, or one release."""
        return self.since if len(self.releases) == 1 else f"{self.since} to {self.releases[-1]}"

    def as_dict(self) -> dict[str, Any]:
        """As an answer shows it."""
        return {
            "since": self.since,
            "first": self.releases[0],
            "last": self.releases[-1],
            "releases": list(self.releases),
            "verdict": self.verdict,
            "layer": self.layer,
            "backend": self.backend,
            "reason": self.reason,
            "evidence": self.evidence,
            "start_uncertain": self.start_uncertain,
            "end_uncertain": self.end_uncertain,
            "ran_on": list(self.ran_on),
        }


def timeline(
    matrix: Matrix,
    combinations: Sequence[Combination],
    observations: Sequence[Observation] = (),
    stage: str | None = None,
) -> list[Stretch]:
    """The stretches of all releases, oldest first; `stage` asks for one stage instead of the whole."""
    releases = matrix.rules(combinations[0].framework).releases
    points = [_point(matrix, combinations, release, observations, stage) for release in releases]
    return list(_stretches(points, [release.is_read for release in releases]))


Point = tuple[str, str, str | None, str | None, str | None, dict[str, Any] | None]


def _point(
    matrix: Matrix,
    combinations: Sequence[Combination],
    release: Release,
    observations: Sequence[Observation],
    stage: str | None,
) -> Point:
    if not release.is_read:
        return release.name, "unknown", None, None, UNREAD, None
    found = verdict_of_all(matrix, [replace(item, release=release.name) for item in combinations], observations)
    decides = found.stages[stage] if stage else found.deciding
    evidence = dict(decides.evidence) if decides.evidence else None
    return release.name, decides.verdict, decides.layer, _backend(found), decides.reason, evidence


def _backend(found: Verdict) -> str | None:
    return found.backend if found.verdict != "refused" else None


def _stretches(points: Sequence[Point], is_read: Sequence[bool]) -> Iterator[Stretch]:
    start = 0
    for key, group in groupby(points, key=lambda point: (point[1:4], point[4] == UNREAD)):
        members = list(group)
        (name, layer, backend), is_unread = key
        _, _, _, _, reason, evidence = members[-1]
        yield Stretch(
            releases=tuple(member[0] for member in members),
            verdict=name,
            layer=layer,
            backend=backend,
            reason=reason,
            evidence=evidence,
            start_uncertain=not is_unread and (start == 0 or not is_read[start - 1]),
            end_uncertain=start + len(members) == len(points),
            ran_on=tuple(member[0] for member in members if name == "validated"),
        )
        start += len(members)
