"""Reports come from machines we do not know: everything in them is checked."""

import json

import pytest

from nvdash.errors import NvdashError
from nvdash.readers import smoke_report


def report(**changes):
    objects = "question environment requested resolved observed cache stages scope timings"
    lists = "kernels launches numbers phases attempts not_tested log"
    return {
        "schema": "nvdash.smoke/1",
        "case_id": "0a1b2c3d",
        "ran_at": "2026-11-29T23:00:00Z",
        "engine": "vllm",
        "framework": "vllm",
        "release": "0.32.0",
        "arch": "cpu",
        "gpu": None,
        "verdict": "fallback",
        "layer": "silent",
        "reason": "1,024 bytes per token, 576 expected",
        **{key: {} for key in objects.split()},
        **{key: [] for key in lists.split()},
        **changes,
    }


def read(tmp_path, value):
    path = tmp_path / "report.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return smoke_report.read(path)


def test_a_report_survives_being_written_and_read(tmp_path):
    found = read(tmp_path, report(kernels=[{"name": "kernel_mha", "calls": 3}], not_tested=["graphs"]))
    assert found.verdict == "fallback"
    assert found.kernels[0]["calls"] == 3
    assert read(tmp_path, found.as_dict()) == found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"verdict": "ok"}, "verdict: expected one of pass"),
        ({"engine": "llama"}, "engine: expected one of reference"),
        ({"layer": "moon"}, "layer: expected null or one of config"),
        ({"schema": "nvdash.smoke/9"}, "a newer nvdash wrote it"),
        ({"schema": "other"}, "no schema key"),
        ({"kernels": [1]}, "kernels: expected a list of objects"),
        ({"stages": {"gemm": {}}}, "stages: expected an object of weights"),
        ({"surprise": 1}, "found 'surprise'"),
        ({"release": 0.32}, "release: expected a text or null"),
        ({"observed": {"x": 2**64}}, "64-bit"),
        ({"kernels": [{}] * 4001}, "at most 4,000 entries"),
    ],
)
def test_what_is_no_report_is_refused_with_its_place(tmp_path, changes, words):
    with pytest.raises(NvdashError) as refused:
        read(tmp_path, report(**changes))
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "[1]", '{"schema": "nvdash.smoke/1", "x": NaN}'])
def test_broken_files_are_refused(tmp_path, text):
    with pytest.raises(NvdashError):
        read(tmp_path, text)


def test_deep_nesting_and_infinity_are_refused(tmp_path):
    deep: object = 1
    for _ in range(12):
        deep = [deep]
    for value in (deep, float("inf")):
        with pytest.raises(NvdashError):
            read(tmp_path, report(observed={"x": value}))


def test_a_missing_key_is_named(tmp_path):
    value = report()
    del value["cache"]
    with pytest.raises(NvdashError, match="the key 'cache'"):
        read(tmp_path, value)


def test_a_file_over_the_limit_is_not_parsed(tmp_path):
    with pytest.raises(NvdashError, match="at most 8,388,608 bytes"):
        read(tmp_path, " " * (smoke_report.MAX_BYTES + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /home/jo/models/x.json failed", "open <path>/x.json failed"),
        ("tcp://10.0.0.7:5555 and 10.1.2.3", "<url> and <ip>"),
        ("4 tokens/s, K/V, 1/2", "4 tokens/s, K/V, 1/2"),
        ("red \x1b[31mtext\x00", "red [31mtext"),
    ],
)
def test_paths_and_addresses_are_dropped_at_the_door(text, expected):
    assert smoke_report.scrub(text) == expected


def test_only_a_cuda_engine_counts_as_a_cuda_path(tmp_path):
    cuda = report(environment={"device": "cuda"})
    assert read(tmp_path, cuda).is_cuda
    assert not read(tmp_path, {**cuda, "engine": "reference"}).is_cuda
    assert not read(tmp_path, {**cuda, "engine": "reference", "verdict": "pass"}).validates
