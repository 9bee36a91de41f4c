"""The load generator and the benchmark say what they should, on a small store."""

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def load(name):
    spec = importlib.util.spec_from_file_location(f"store_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generator_makes_different_runs_and_the_same_ones_again():
    generate = load("generate")
    first = [run.run_id for run in generate.runs(300)]
    assert len(set(first)) == 300
    assert [run.run_id for run in generate.runs(300)] == first
    assert {run.values["weight_format"] for run in generate.runs(50)} == {"bf16", "nvfp4"}


@pytest.mark.full
@pytest.mark.serial
def test_a_question_costs_no_more_than_a_few_raw_scans_of_its_columns():
    _, *questions = load("bench_store").rows(100_000)
    assert [row["name"] for row in questions] == [
        f"store {name}, 100000 runs" for name in ("comparison", "pareto", "history")
    ]
    assert max(row["ratio_cpu"] for row in questions) <= 4.0
