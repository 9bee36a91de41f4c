"""What may become a value of a run: units by name, ranges by kind, texts without places."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.readers.fields import ALWAYS_SHOWN, FIELDS
from nvdash.readers.record import RecordError, clean_model, clean_text, make_run, only_measured, to_number


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("duration_s", -0.1),
        ("duration_s", math.inf),
        ("ttft_mean_ms", math.nan),
        ("ttft_mean_ms", 1e19),
        ("requests_completed", 1.5),
        ("requests_completed", 2**53 + 2),
        ("gpu_memory_utilization", 1.01),
        ("request_rate_rps", -1),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_name(name, value):
    with pytest.raises(RecordError, match=name):
        make_run("file", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("request_rate_rps", math.inf, "inf"),
        ("request_rate_rps", "inf", "inf"),
        ("request_rate_rps", "trace", None),
        ("requests_completed", 64.0, 64),
        ("requests_completed", "1,024", 1024),
        ("chunked_prefill_size", -1, -1),
        ("flash_attn", 1, True),
        ("flash_attn", "maybe", None),
        ("max_num_seqs", True, None),
    ],
)
def test_a_value_takes_the_form_of_its_field(name, value, kept):
    assert make_run("file", **{name: value}).get(name) == kept


@pytest.mark.parametrize(
    ("stated", "kept"),
    [
        ("nvidia/Qwen3-32B-NVFP4", "nvidia/Qwen3-32B-NVFP4"),
        ("/home/me/models/Qwen3-32B", "Qwen3-32B"),
        ("~/Qwen3-32B/", "Qwen3-32B"),
        ("C:\\models\\Qwen3", "Qwen3"),
        ("s3://bucket/a/Qwen3", "Qwen3"),
        ("models/nvidia/Qwen3", "Qwen3"),
        ("/x/hub/models--nvidia--Qwen3/snapshots/0a1b2c", "nvidia/Qwen3"),
        ("a\x00b\nc", "a b c"),
        ("", None),
    ],
)
def test_a_model_id_that_is_a_place_keeps_only_its_name(stated, kept):
    assert clean_model(stated) == kept


@given(st.text())
def test_no_text_keeps_control_characters_or_grows(text):
    kept = clean_text(text)
    assert kept is None or (len(kept) <= 300 and not any(ord(character) < 32 for character in kept))


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**18), 10**18))
def test_a_printed_number_is_read_back(number):
    assert to_number(str(number)) == number


def test_zeros_are_unknown_when_nothing_completed():
    values = {
        "requests_completed": 0,
        "ttft_mean_ms": 0.0,
        "ttft_std_ms": 0.0,
        "output_tok_s": 0.0,
        "num_prompts": 24,
        "request_rate_rps": 4.0,
    }
    kept, zeros = only_measured(values, 0)
    assert kept == {
        "requests_completed": 0,
        "ttft_mean_ms": None,
        "ttft_std_ms": None,
        "output_tok_s": None,
        "num_prompts": 24,
        "request_rate_rps": 4.0,
    }
    assert zeros == ["ttft_mean_ms", "output_tok_s"]


def test_a_time_per_token_of_zero_is_unknown_although_requests_completed():
    kept, zeros = only_measured({"tpot_mean_ms": 0.0, "ttft_mean_ms": 5.0, "itl_std_ms": 0.0}, 10)
    assert kept == {"tpot_mean_ms": None, "ttft_mean_ms": 5.0, "itl_std_ms": 0.0}
    assert zeros == ["tpot_mean_ms"]


def test_every_field_has_a_label_and_units_stand_in_the_names():
    for name, field in FIELDS.items():
        assert field.label
        suffixes = {"_ms": "ms", "_tok_s": "tokens/s", "_rps": "requests/s", "_gib": "GiB"}
        expected = next((unit for suffix, unit in suffixes.items() if name.endswith(suffix)), None)
        assert expected is None or field.unit == expected, name
    assert set(ALWAYS_SHOWN) <= set(FIELDS)
