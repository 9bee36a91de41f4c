"""Reads one release of SGLang: every statement and fact its source gives."""

from pathlib import Path

from nvdash.extract import sglang_evaluated, sglang_facts, sglang_sizes, sglang_weights
from nvdash.extract.findings import Fact
from nvdash.extract.history import becomes, relate
from nvdash.extract.sglang_config import Configuration
from nvdash.extract.sglang_statements import Statements
from nvdash.extract.source import Tree
from nvdash.extract.statements import Reading

PACKAGE = "sglang"


def read_facts(tree: Tree, configuration: Configuration) -> list[Fact]:
    """The facts of one release; `<first>` and its like stand where other releases decide."""
    words = sglang_facts.choices("kv_cache_dtype")(tree)
    return [
        *sglang_facts.read(tree),
        *sglang_evaluated.read(tree, configuration),
        *sglang_sizes.read(tree, tuple(words[0]) if words else ()),
    ]


def read_release(root: Path, release: str) -> Reading:
    """Everything that one unpacked tree says."""
    tree = Tree(root, release, PACKAGE)
    configuration = Configuration(tree)
    facts = read_facts(tree, configuration)
    reading = Reading(release)
    reading.facts = [fact.as_row() for fact in facts]
    pin = sglang_facts.pinned_flashinfer(tree)
    if pin is not None:
        reading.flashinfer, reading.flashinfer_place = pin[0], (pin[1], pin[2])
    Statements(tree, facts, configuration, reading).read()
    sglang_weights.read(facts, reading)
    return reading


def finish(series: dict[str, list[Fact]]) -> dict[str, list[Fact]]:
    """The facts of neighbouring releases with what only they together say."""
    return becomes(
        relate(series, merge_posts=True), "default_backend.mha.sm100", "<value> becomes the SM100 default in <release>"
    )
