"""What went wrong, where, and what to do next.

Every refusal that a person can cause is one of these. Front ends catch
`NvdashError` and show it; anything else is our own mistake.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class NvdashError(Exception):
    """A problem in something the user gave us: place, expectation, finding, next step."""

    exit_code = 2

    def __init__(self, where: str, expected: str, found: str, hint: str = "") -> None:
        super().__init__(where, expected, found, hint)
        self.where, self.expected, self.found, self.hint = where, expected, found, hint

    def __str__(self) -> str:
        text = f"{self.where}: expected {self.expected}, {self.found}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def as_dict(self) -> dict[str, str]:
        """The four parts, as the `error` object of a JSON answer."""
        return {"where": self.where, "expected": self.expected, "found": self.found, "hint": self.hint}


class UsageError(NvdashError):
    """A flag, value or file that cannot be used as it stands (exit code 2)."""


class UnknownError(NvdashError):
    """A name that no catalogue knows; the answer is unknown, not no (exit code 3)."""

    exit_code = 3


class Problems(NvdashError):
    """Every problem found in one file, reported together."""

    def __init__(self, where: str, problems: Iterable[NvdashError]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        found = first.found if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__(where, first.expected, found, first.hint)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def nearest(word: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names a person who typed `word` most likely meant, best first."""
    spelled = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), spelled, n=count, cutoff=0.5)
    inside = [low for low in spelled if word and word.lower() in low and low not in close]
    return [spelled[low] for low in [*close, *inside][:count]]


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A hint that names the nearest known words, or what to list when nothing is near."""
    close = nearest(word, names)
    return f"did you mean {', '.join(close)}?" if close else ""
