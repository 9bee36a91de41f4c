"""Many visitors, many reruns, a large grid; ratios in one run are held to a bound, generously."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = [pytest.mark.full, pytest.mark.serial, pytest.mark.timeout(900)]


def rows(script, *words):
    done = subprocess.run([sys.executable, str(HERE / script), *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout[done.stdout.index("[") :])


def test_thirty_visitors_cost_each_script_no_more_and_memory_stays_flat():
    scripts, memory = rows("clients.py", "--seconds", "10", "--reruns", "250")
    assert scripts["reruns"] >= 30
    assert scripts["ratio_cpu"] < 3  # processor time: the clock of a shared machine says little
    assert memory["ratio"] < 1.4


def test_a_click_into_the_grid_costs_little_more_than_a_rerun():
    first, again, large = rows("grid.py", "--repetitions", "5")
    assert again["ratio_cpu"] < 4
    assert first["ratio_cpu"] < 8
    assert large["value"] > 0
