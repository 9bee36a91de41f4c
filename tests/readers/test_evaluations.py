"""lm-evaluation-harness of several releases, aiperf's telemetry, smoke reports: what each states and what not."""

import json

import pytest

from nvdash.readers.bundle import read_file
from tests.readers.test_smoke_report import report

EVALUATION = {
    "results": {
        "gsm8k": {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.9,
            "exact_match_stderr,strict-match": 0.01,
            "exact_match,flexible-extract": 0.95,
        },
        "group": {"alias": "group", "acc,none": 0.5, "acc_stderr,none": "N/A", "sample_count": {"acc,none": 300}},
        "part": {"alias": " - part", "acc,none": 0.5, "acc_stderr,none": 0.02},
    },
    "groups": {"group": {"alias": "group", "acc,none": 0.5}},
    "group_subtasks": {"group": ["part"], "gsm8k": []},
    "configs": {},
    "versions": {"gsm8k": 3.0, "group": "1.0", "part": 1.0},
    "n-shot": {"gsm8k": 5, "part": 0},
    "n-samples": {"gsm8k": {"original": 1319, "effective": 100}, "part": {"original": 300, "effective": 300}},
    "higher_is_better": {"gsm8k": {"exact_match": True}},
    "config": {
        "model": "vllm",
        "model_args": "pretrained=nvidia/Qwen3-8B-NVFP4,kv_cache_dtype=nvfp4,tensor_parallel_size=2,max_model_len=8192",
    },
    "pretty_env_info": "GPU models and configuration: \nGPU 0: NVIDIA B200\nGPU 1: NVIDIA B200\n"
    "Nvidia driver version: 600.10\n",
    "date": 1780862406.5,
    "chat_template_sha": "abc",
}


def read(tmp_path, value: object):
    path = tmp_path / "file.json"
    path.write_text(json.dumps(value))
    return read_file(path)


def test_one_row_per_task_metric_and_filter_and_groups_count_once(tmp_path):
    rows = {(row.task, row.filter): row for row in read(tmp_path, EVALUATION).quality}
    assert set(rows) == {("gsm8k", "strict-match"), ("gsm8k", "flexible-extract"), ("group", "none"), ("part", "none")}
    strict = rows["gsm8k", "strict-match"]
    assert (strict.value, strict.stderr, strict.n_shot, strict.n_effective, strict.n_original) == (
        0.9,
        0.01,
        5,
        100,
        1319,
    )
    assert (strict.higher_is_better, strict.task_version, strict.chat_template_sha) == (True, "3.0", "abc")
    group = rows["group", "none"]
    assert (group.is_group, group.stderr, group.n_effective, group.n_shot) == (True, None, 300, None)
    assert rows["gsm8k", "flexible-extract"].stderr is None


def test_arguments_of_older_releases_are_one_text(tmp_path):
    server = read(tmp_path, EVALUATION).server
    assert (server["model"], server["kv_cache_dtype_requested"], server["tp"]) == ("nvidia/Qwen3-8B-NVFP4", "nvfp4", 2)
    assert (server["gpu"], server["driver"], server["max_model_len"]) == ("NVIDIA B200", "600.10", 8192)


def test_behind_an_api_the_environment_is_the_client_s(tmp_path):
    remote = {
        **EVALUATION,
        "config": {"model": "local-completions", "model_args": {"model": "alias", "base_url": "http://10.0.0.1"}},
    }
    found = read(tmp_path, remote)
    assert "gpu" not in found.server and "driver" not in found.server
    assert found.server["model"] == "alias"
    assert "client_environment" in [warning.code for warning in found.warnings]
    assert "10.0.0.1" not in str(found.as_dict())


def test_a_release_without_filters_in_its_keys_gives_rows_without_a_filter(tmp_path):
    old = {
        "results": {"arc": {"acc": 0.5, "acc_stderr": 0.01}},
        "versions": {"arc": 0},
        "config": {"model": "hf", "model_args": "pretrained=gpt2"},
    }
    rows = read(tmp_path, old).quality
    assert [(row.task, row.metric, row.filter, row.value, row.stderr) for row in rows] == [
        ("arc", "acc", None, 0.5, 0.01)
    ]


def test_samples_are_recognised_and_never_taken_for_results(tmp_path):
    found = read(tmp_path, {"doc_id": 0, "doc": {"question": "a secret"}, "filtered_resps": ["x"], "exact_match": 1.0})
    assert (found.format, found.quality, found.runs) == ("lm-eval-samples", (), ())
    assert "secret" not in str(found.as_dict())


def telemetry(*endpoints: list[str]) -> dict:
    places = {
        f"host{n}:9400": {"gpus": {f"gpu_{g}": {"gpu_name": name} for g, name in enumerate(names)}}
        for n, names in enumerate(endpoints)
    }
    return {
        "aiperf_version": "0.13.0",
        "input_config": {"endpoint": {"streaming": True}},
        "request_latency": {"unit": "ms", "avg": 900.0},
        "telemetry_data": {"endpoints": places},
    }


@pytest.mark.parametrize(
    ("endpoints", "gpu", "count", "warned"),
    [
        ([["NVIDIA B200"]], "NVIDIA B200", 1, False),
        ([["NVIDIA B200"] * 2], "NVIDIA B200", 2, True),
        ([["NVIDIA B200"], ["NVIDIA B200"] * 3], "NVIDIA B200", 4, True),
        ([["NVIDIA B200", "NVIDIA RTX A2000"]], None, None, True),
        ([[]], None, None, False),
    ],
)
def test_telemetry_counts_over_endpoints_and_names_no_mixture(tmp_path, endpoints, gpu, count, warned):
    found = read(tmp_path, telemetry(*endpoints))
    assert (found.runs[0].get("gpu"), found.runs[0].get("gpu_count")) == (gpu, count)
    assert ("telemetry" in [warning.code for warning in found.warnings]) == warned


@pytest.mark.parametrize(("streaming", "kept"), [(True, 60.0), (False, None)])
def test_without_streaming_there_is_no_first_token(tmp_path, streaming, kept):
    value = {**telemetry([]), "time_to_first_token": {"unit": "ms", "avg": 60.0}}
    value["input_config"] = {"endpoint": {"streaming": streaming}}
    assert read(tmp_path, value).runs[0].get("ttft_mean_ms") == kept


@pytest.mark.parametrize(
    ("unit", "kept"), [("ms", 60.0), ("sec", 60_000.0), ("ns", 60e-6), ("us", 0.06), ("fortnights", None)]
)
def test_a_time_is_converted_by_the_unit_beside_it_and_unknown_without_one(tmp_path, unit, kept):
    value = {**telemetry([]), "time_to_first_token": {"unit": unit, "avg": 60.0}}
    assert read(tmp_path, value).runs[0].get("ttft_mean_ms") == (pytest.approx(kept) if kept else None)


def test_a_smoke_report_comes_back_with_its_verdict_and_kernels(tmp_path):
    found = read(tmp_path, report(kernels=[{"name": "a", "calls": 2}, {"name": "b", "calls": 1, "time_us": 5.0}]))
    assert (found.format, found.server["verdict"], found.server["layer"]) == ("smoke-report", "fallback", "silent")
    assert [(row.name, row.calls, row.time_us) for row in found.kernels] == [("b", 1, 5.0), ("a", 2, None)]


def test_a_damaged_smoke_report_is_refused_with_its_reason(tmp_path):
    found = read(tmp_path, report(verdict="great"))
    assert found.error is not None
    assert "verdict" in found.error.where
