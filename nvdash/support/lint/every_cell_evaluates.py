"""Every cell of the declared cross product evaluates to one of the six verdicts."""

from collections.abc import Iterator

from nvdash.readers.matrix import Matrix, Rules
from nvdash.support.names import cache_dtypes
from nvdash.support.pivot import pivot
from nvdash.support.values import RANK
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
    """GPUs x cache dtypes x common head layouts, in every read release that has verdicts."""
    archs = [name for name in matrix.axes().get("arch", {}) if name.startswith("sm")]
    for release in rules.read_releases:
        words = cache_dtypes(matrix, rules.framework, release.name)
        if not view(rules, release.name).priority or not words:
            continue
        for shape in SHAPES:
            item = Combination(rules.framework, release.name, archs[0], "bf16", heads=HeadLayout.parse(shape))
            grid = pivot(matrix, item, ("arch", archs), ("kv_cache_dtype", words))
            broken = [cell for row in grid for cell in row if cell.verdict not in RANK]
            for cell in broken:
                yield f"{rules.framework} {release.name}", f"{cell.row} x {cell.column} gives {cell.verdict}"
