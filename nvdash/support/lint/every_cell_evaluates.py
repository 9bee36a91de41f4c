"""Every cell of the declared cross product is decided, or a statement says why it is not."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Release, Rules
from nvdash.support.evaluate import verdict
from nvdash.support.names import archs, cache_dtypes
from nvdash.support.view import view
from nvdash.targets import Combination, HeadLayout

SHAPES = (
    "gqa:32/8x64",
    "gqa:32/8x128",
    "gqa:32/8x256",
    "gqa:32/8x128,sinks",
    "mla:128/1x576/512",
    "mla_sparse:64/1x576/512",
)


def check(rules: Rules, matrix: Matrix) -> Iterator[tuple[str, str]]:
    """GPUs x cache dtypes x head layouts of every release that lists backends: silence is a finding."""
    for release in rules.read_releases:
        if view(rules, release.name).priority:
            for shape in SHAPES:
                yield from _silent_cells(rules, matrix, release, shape)


def _silent_cells(rules: Rules, matrix: Matrix, release: Release, shape: str) -> Iterator[tuple[str, str]]:
    silent = []
    for arch in archs(matrix, rules.framework, release.name):
        for word in cache_dtypes(matrix, rules.framework, release.name):
            item = Combination(
                rules.framework, release.name, arch, "bf16", None, word, HeadLayout.parse(shape), checkpoint_kv="none"
            )
            decides = verdict(matrix, item).stages["prefill"]
            if decides.verdict == "unknown" and decides.statement is None:
                silent.append(f"{arch} x {word}")
    if silent:
        some = ", ".join(silent[:5])
        yield f"{rules.framework} {release.name}", f"{shape}: {len(silent)} cells are unknown without a reason: {some}"
