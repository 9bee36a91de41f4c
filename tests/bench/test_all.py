"""The one command that times everything, on a small store; only ratios in one run are held to a bound, generously."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ALL = Path(__file__).parent / "all.py"
pytestmark = [pytest.mark.full, pytest.mark.serial]


@pytest.fixture(scope="module")
def rows():
    words = ["--runs", "3000", "--repetitions", "3", "--only", "cold", "matrix", "store", "pages"]
    done = subprocess.run([sys.executable, str(ALL), *words], capture_output=True, text=True, check=True)
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def test_every_part_is_measured(rows):
    assert {row["part"] for row in rows.values()} == {"cold", "matrix", "store", "pages"}
    assert [name for name, row in rows.items() if "not_measured" in row] == []
    named = {"cold check", "cold memory", "pivot, first", "warm verdict", "store ingest, 3000 runs", "first render"}
    assert named <= rows.keys()
    assert sum(name.startswith("page script ") for name in rows) == 6


def test_work_that_was_done_before_costs_a_fraction_of_the_first_time(rows):
    assert rows["pivot, cached"]["cpu"] * 5 < rows["pivot, first"]["cpu"]
    assert rows["warm verdict"]["cpu"] * 20 < rows["cold check"]["cpu"]
    for name in ("explore/matrix", "explore/memory", "explore/tradeoffs"):
        row = rows[f"page script {name}, warm"]
        assert row["cpu"] * 2 < row["first_ms"]


def test_a_question_to_the_store_stays_near_a_raw_scan(rows):
    questions = [row for row in rows.values() if row["part"] == "store" and "ratio_cpu" in row]
    assert len(questions) == 3
    assert max(row["ratio_cpu"] for row in questions) < 4
