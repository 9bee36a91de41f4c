"""Checked reading of a model config: types, ranges, spellings, towers."""

import pytest

from nvdash.readers.config import ConfigError, Keys, text_tower


def test_the_first_spelling_that_is_set_wins_and_all_count_as_read():
    keys = Keys({"n_layer": 12})
    assert keys.count("num_hidden_layers", "n_layer") == 12
    assert keys.read == {"num_hidden_layers", "n_layer"}


@pytest.mark.parametrize("value", [0, -1, "12", True, 1.5, [12], 2**41, float("nan"), float("inf")])
def test_a_count_that_is_no_whole_number_in_range_is_refused_by_name(value):
    with pytest.raises(ConfigError) as refusal:
        Keys({"num_hidden_layers": value}).count("num_hidden_layers")
    assert refusal.value.key == "num_hidden_layers"


def test_a_whole_number_written_as_a_float_is_a_count():
    assert Keys({"num_hidden_layers": 12.0}).count("num_hidden_layers") == 12


def test_absent_and_null_are_both_unknown():
    assert Keys({}).count("head_dim") is None
    assert Keys({"head_dim": None}).count("head_dim") is None
    with pytest.raises(ConfigError, match="found no such key"):
        Keys({"head_dim": None}).need("head_dim")


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (1, lambda keys: keys.flag("x")),
        (1, lambda keys: keys.word("x")),
        ([1, "a"], lambda keys: keys.items("x", (int,))),
    ],
)
def test_another_type_than_expected_is_refused(value, read):
    with pytest.raises(ConfigError, match=r"config\.json x"):
        read(Keys({"x": value}))


def test_a_key_of_an_inner_object_is_named_with_its_place():
    inner = Keys({"linear_attn_config": {"num_heads": "many"}}).inner("linear_attn_config")
    with pytest.raises(ConfigError, match=r"linear_attn_config\.num_heads"):
        inner.need("num_heads")


def test_a_tower_takes_over_what_only_the_whole_says():
    whole = {"dtype": "float16", "architectures": ["X"], "text_config": {"num_hidden_layers": 2}}
    assert text_tower(whole) == {"dtype": "float16", "architectures": ["X"], "num_hidden_layers": 2}


def test_a_tower_without_layers_is_not_taken_for_the_language_model():
    whole = {"num_hidden_layers": 3, "text_config": {"vocab_size": 9}}
    assert text_tower(whole) is whole


def test_towers_inside_towers_are_followed_a_few_levels_only():
    nested = {"num_hidden_layers": 7}
    for _ in range(50):
        nested = {"text_config": nested}
    assert "text_config" in text_tower(nested)
