"""What changed between two releases, combination by combination."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nvdash.readers.matrix import Matrix
from nvdash.support.observations import Observation
from nvdash.support.values import RANK, Verdict
from nvdash.support.whole import verdict_of_all
from nvdash.targets import Combination

RUNS = RANK["conditional"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One combination (the first shape of a model stands for it) in both releases."""

    combination: Combination
    before: Verdict
    after: Verdict

    @property
    def change(self) -> str:
        """gained, lost, new_trap, changed (verdict, layer or backend) or unchanged; unknown is neither won nor lost."""
        before, after = self.before.verdict, self.after.verdict
        if "unknown" in (before, after):
            return "unchanged" if before == after else "changed"
        if after == "trap" and before != "trap":
            return "new_trap"
        ran, runs = RANK[before] >= RUNS, RANK[after] >= RUNS
        if runs != ran:
            return "gained" if runs else "lost"
        same = (before, self.before.layer, self.before.backend) == (after, self.after.layer, self.after.backend)
        return "unchanged" if same else "changed"

    def as_dict(self) -> dict[str, Any]:
        """As an answer shows it."""
        decides = self.after.deciding
        return {
            "arch": self.combination.arch,
            "kv_cache_dtype": self.combination.kv_cache_dtype,
            "weights": self.combination.weights,
            "head_layout": str(self.combination.heads) if self.combination.heads else None,
            "change": self.change,
            "from": self.before.verdict,
            "to": self.after.verdict,
            "from_backend": self.before.backend,
            "to_backend": self.after.backend,
            "from_layer": self.before.layer,
            "layer": self.after.layer,
            "reason": decides.reason,
            "evidence": dict(decides.evidence) if decides.evidence else None,
        }


def differences(
    matrix: Matrix,
    models: Iterable[Sequence[Combination]],
    before: str,
    after: str,
    observations: Sequence[Observation] = (),
) -> Iterator[Difference]:
    """Every model, as one combination per attention shape, judged in both releases."""
    for shapes in models:
        old = verdict_of_all(matrix, [replace(item, release=before) for item in shapes], observations)
        new = verdict_of_all(matrix, [replace(item, release=after) for item in shapes], observations)
        yield Difference(shapes[0], old, new)
