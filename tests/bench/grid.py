"""What a click into the support grid costs beside a trivial rerun, and a grid of 60 x 60, as JSON rows.

    python tests/bench/grid.py [--repetitions N]

Scripts run without a browser; a click on a cell that nobody opened before computes its detail.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

from timing import in_turns, row  # noqa: E402

LARGE = """
import pandas as pd
from nvdash.ui import matrix_views

names = {f"row {number}": f"r{number}" for number in range(60)}
heads = {f"column {number}": f"c{number}" for number in range(60)}
frame = pd.DataFrame("◐ 0.33.0", index=list(names), columns=list(heads))
matrix_views.show_grid(frame, [["expected"] * 60 for _ in names], "large", names, heads)
"""


def clicked(app: Any, cells: list[list[Any]]) -> Any:
    """The page after a click on these cells."""
    app.session_state[app.dataframe[0].key] = {"selection": {"rows": [], "columns": [], "cells": cells}}
    return app.run()


def rows(repetitions: int = 7) -> list[dict[str, Any]]:
    """The whole grid of GPUs by cache dtypes, clicked and not, and a grid of 60 x 60."""
    from streamlit.testing.v1 import AppTest

    logging.disable(logging.WARNING)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app.query_params["matrix_every"] = "true"
    app.run()
    app.switch_page("pages/explore/matrix.py").run()
    grid = app.dataframe[0].value
    fresh = iter([[at, column] for column in grid.columns for at in range(len(grid))])
    large = AppTest.from_string(LARGE, default_timeout=300).run()
    work = {
        "trivial": lambda: clicked(app, []),
        "first": lambda: clicked(app, [next(fresh)]),
        "again": lambda: clicked(app, [[0, str(grid.columns[0])]]),
        "large": lambda: clicked(large, [[59, "column 59"]]),
    }
    times = in_turns(work, repetitions)
    if app.exception or large.exception:
        raise SystemExit("a page ended in an exception")
    base = {"baseline": "rerun without a cell", "baseline_ms": times["trivial"].wall_s * 1000}
    names = {
        "first": f"grid {grid.shape[0]} x {grid.shape[1]}, a cell nobody opened",
        "again": f"grid {grid.shape[0]} x {grid.shape[1]}, a cell opened before",
        "large": "grid 60 x 60, a cell",
    }
    return [
        row(
            text,
            times[name].wall_s * 1000,
            "ms",
            "ratio <= 1.5" if name != "large" else "",
            ratio=times[name].wall_s / times["trivial"].wall_s,
            ratio_cpu=times[name].cpu_s / times["trivial"].cpu_s,
            **base,
        )
        for name, text in names.items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NVDASH_STORE"] = str(Path(folder) / "bench.duckdb")
        print(json.dumps(rows(parser.parse_args().repetitions), indent=1))
