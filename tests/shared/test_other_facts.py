"""The acceptance facts about SGLang, FlashInfer, TensorRT-LLM and llama.cpp, each by its name, place included."""

from pathlib import Path

import pytest
import yaml

from nvdash.readers.matrix import read_facts

FACTS = Path(__file__).parents[3] / "shared" / "facts" / "other-frameworks-facts.yaml"
pytestmark = pytest.mark.skipif(not FACTS.exists(), reason="the facts of ../shared are not here")
ROWS = yaml.safe_load(FACTS.read_text())["acceptance_facts"] if FACTS.exists() else []


@pytest.mark.parametrize("fact", ROWS, ids=[f"{f['framework']} {f['version']} {f['fact']}" for f in ROWS])
def test_the_matrix_states_the_fact_with_its_place(fact):
    rows = read_facts(fact["framework"], str(fact["version"])) or []
    stated = {row["fact"]: row for row in rows}.get(fact["fact"])
    assert stated, f"{fact['framework']} {fact['version']} states no {fact['fact']}"
    assert stated["value"] == fact["expected"]
    assert (stated["path"], stated["line"]) == (fact["path"], fact["line"])


def test_every_acceptance_fact_is_named_here():
    assert len(ROWS) == 85
