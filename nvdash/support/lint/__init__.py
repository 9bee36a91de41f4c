"""Checks of the support matrix, one per file: each a pure function from the rules to findings.

Reading already refuses unknown keys, unquoted versions and contradictions; these look at what statements say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from nvdash.readers.matrix import Matrix, framework_names


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, with its place."""

    check: str
    where: str
    message: str

    def as_dict(self) -> dict[str, str]:
        """As an answer shows it."""
        return {"check": self.check, "where": self.where, "message": self.message}


def check_names() -> list[str]:
    """Every check, by its module's name."""
    return sorted(module.name for module in iter_modules(__path__))


def lint(matrix: Matrix, frameworks: list[str] | None = None) -> Iterator[Finding]:
    """What every check finds in every framework."""
    for name in check_names():
        check = import_module(f"{__name__}.{name}").check
        for framework in frameworks or framework_names():
            for where, message in check(matrix.rules(framework), matrix):
                yield Finding(name, where, message)
