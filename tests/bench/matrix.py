"""How fast the support matrix answers in a warm process, beside the targets of DESIGN section 11.

python tests/bench/matrix.py [--repetitions N]
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from timing import in_turns, row  # noqa: E402

from nvdash.readers.matrix import Matrix  # noqa: E402
from nvdash.support.evaluate import verdict  # noqa: E402
from nvdash.support.names import archs, cache_dtypes  # noqa: E402
from nvdash.support.pivot import cube  # noqa: E402
from nvdash.support.view import view  # noqa: E402
from nvdash.targets import Combination, HeadLayout  # noqa: E402

ITEM = Combination(
    "vllm", "0.33.0", "sm120", "bf16", None, "nvfp4", HeadLayout.parse("gqa:32/8x128"), checkpoint_kv="none"
)


def rows(repetitions: int = 5) -> list[dict[str, Any]]:
    """The pivot of all capabilities, backends and dtypes, first and again, and one warm verdict."""
    matrix = Matrix()
    axes = {
        "arch": archs(matrix, "vllm", ITEM.release),
        "backend": view(matrix.rules("vllm"), ITEM.release).backends,
        "kv_cache_dtype": cache_dtypes(matrix, "vllm", ITEM.release),
    }
    cells = len(cube(matrix, ITEM, axes))
    pivots = in_turns(
        {"first": lambda: cube(Matrix(), ITEM, axes), "cached": lambda: cube(matrix, ITEM, axes)}, repetitions
    )
    warm = in_turns({"verdict": lambda: verdict(matrix, ITEM)}, 50)["verdict"]
    return [
        row("pivot, first", pivots["first"].wall_s, "s", "<= 0.25", cpu=pivots["first"].cpu_s, cells=cells),
        row("pivot, cached", pivots["cached"].wall_s, "s", "<= 0.05", cpu=pivots["cached"].cpu_s),
        row("warm verdict", warm.wall_s, "s", "<= 0.001", cpu=warm.cpu_s),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    print(json.dumps(rows(parser.parse_args().repetitions), indent=1))
