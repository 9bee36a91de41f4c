"""The model's own context length, as an engine derives it from the config."""

import pytest

from nvdash.footprint.layers import layout
from nvdash.footprint.lengths import max_position
from nvdash.readers.config import Keys

YARN = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 8192}, 8192),
        ({"max_position_embeddings": 32768, "seq_length": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"max_target_positions": 448}, 448),
        ({}, None),
        ({"max_position_embeddings": 131072, "rope_scaling": YARN}, 131072),
        ({"max_position_embeddings": 32768, "rope_scaling": {"type": "yarn", "factor": 4.0}}, 131072),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2}}, 8192),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131072),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": "two"}}, 4096),
        (
            {
                "model_type": "gemma3_text",
                "max_position_embeddings": 131072,
                "rope_scaling": {"type": "linear", "factor": 8},
            },
            131072,
        ),
    ],
)
def test_the_shortest_stated_length_is_stretched_by_the_rotary_scaling(config, expected):
    assert max_position(Keys(config)) == expected


def test_a_tower_that_leaves_out_its_class_defaults_gets_them():
    # the published gemma-3-4b-it states neither heads nor head size nor pattern in its text tower
    tower = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
    found = layout({"model_type": "gemma3", "text_config": tower})
    assert [(cache.kv_heads, cache.key_size) for cache in found.caches[:1]] == [(4, 256)]
    assert (len(found.of_kind("full")), len(found.of_kind("sliding"))) == (5, 29)
