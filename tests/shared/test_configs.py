"""Every model config we hold yields a layout, or a refusal that names a key."""

import json
from pathlib import Path

import pytest

from nvdash.footprint.caches import LayoutRefused
from nvdash.footprint.layers import layout

CONFIGS = Path(__file__).parents[3] / "shared" / "model-configs"
pytestmark = pytest.mark.skipif(not CONFIGS.exists(), reason="the model configs of ../shared are not here")
FILES = sorted(CONFIGS.glob("*.json")) if CONFIGS.exists() else []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_published_config_yields_a_layout_or_names_the_key(path):
    try:
        found = layout(json.loads(path.read_text()))
    except LayoutRefused as refusal:
        assert refusal.key
        return
    assert found.caches
    assert all(0 <= cache.layer < found.num_layers for cache in found.caches)


def test_most_published_configs_are_understood():
    assert len(FILES) >= 130
    assert sum(_understood(path) for path in FILES) == len(FILES)


def _understood(path: Path) -> bool:
    try:
        return bool(layout(json.loads(path.read_text())).caches)
    except LayoutRefused:
        return False
