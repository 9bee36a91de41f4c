"""The 189 acceptance facts of vLLM, each by name, with value, path and line."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nvdash.readers.matrix import read_facts
from nvdash.readers.yaml_rows import read_yaml

FILE = Path(__file__).parents[2].parent / "shared" / "facts" / "vllm-facts.yaml"
EXPECTED = read_yaml(FILE)["acceptance_facts"] if FILE.is_file() else []
pytestmark = pytest.mark.skipif(not EXPECTED, reason="no ../shared here: its facts of vLLM were not compared")


@cache
def stated(release: str) -> dict[str, dict[str, Any]]:
    return {row["fact"]: row for row in read_facts("vllm", release) or []}


def test_all_189_facts_are_here(shared):
    assert len(EXPECTED) == 189


@pytest.mark.parametrize(
    "fact", EXPECTED or [None], ids=lambda fact: f"{fact['version']}-{fact['fact']}" if fact else "none"
)
def test_the_source_of_the_release_says(fact):
    row = stated(str(fact["version"]))[fact["fact"]]
    assert row["value"] == fact["expected"]
    assert (row["path"], row["line"]) == (fact["path"], fact["line"])
