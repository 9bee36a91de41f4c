"""Shapes that real files take beside the documented one: small files of our own, each with one such turn."""

import json

import pytest

from nvdash.readers.bundle import read_file


@pytest.fixture
def read(tmp_path):
    """Read a file with this content: a text as it stands, anything else as JSON."""

    def read_content(content, name="result.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        reading = read_file(path)
        assert reading.error is None, reading.error
        return reading

    return read_content


def values(run, *names):
    return tuple(run.get(name) for name in names)


def asked(reading):
    return {gap.field for gap in reading.missing}


SINGLE_NODE = {
    "hardware": "b200",
    "framework": "trt",
    "model": "dsr1",
    "precision": "fp8",
    "disagg": False,
    "is_multinode": False,
    "conc": 8,
    "metrics": {"tput_per_gpu": 100.0, "output_tput_per_gpu": 50.0, "median_tpot": 0.01},
}
"""A row of the InferenceX API; its counts of GPUs are added by a test."""


def test_an_inferencex_row_of_one_node_is_as_wide_as_its_parallelism(read):
    sides = {"prefill_tp": 8, "decode_tp": 8, "prefill_ep": 8, "decode_ep": 8, "decode_dp_attention": True}
    counts = {"num_prefill_gpu": 64, "num_decode_gpu": 64}  # tensor times expert parallelism: the same eight GPUs
    run = read([{**SINGLE_NODE, **sides, **counts}]).runs[0]
    assert values(run, "gpu_count", "total_tok_s", "output_tok_s") == (8, 800, 400)
    assert values(run, "tp", "ep", "dp_attention", "num_prefill_gpus") == (8, 8, True, None)


def test_an_inferencex_row_counts_pipeline_and_prefill_context_ranks(read):
    flat = {"hw": "b300", "tp": 4, "pp": 2, "pcp_size": 2, "dcp_size": 2, "is_multinode": False, "disagg": False}
    run = read({**flat, "framework": "vllm", "tput_per_gpu": 10.0, "output_tput_per_gpu": 5.0}).runs[0]
    assert values(run, "gpu_count", "pp", "dcp", "total_tok_s", "output_tok_s") == (16, 2, 2, 160, 80)


def test_an_inferencex_row_of_several_nodes_adds_its_two_sides(read):
    nodes = {"is_multinode": True, "disagg": True, "num_prefill_gpu": 4, "num_decode_gpu": 32}
    run = read([{**SINGLE_NODE, **nodes, "prefill_tp": 4, "decode_tp": 8}]).runs[0]
    assert values(run, "gpu_count", "total_tok_s", "output_tok_s", "tp") == (36, 3600, 1600, None)


def test_an_inferencex_row_that_contradicts_itself_gives_no_totals(read):
    apart = {"disagg": True, "num_prefill_gpu": 36, "num_decode_gpu": 36, "prefill_tp": 36, "decode_tp": 36}
    reading = read([{**SINGLE_NODE, **apart}])
    assert values(reading.runs[0], "gpu_count", "total_tok_s", "total_tok_s_per_gpu") == (None, None, 100)
    assert "gpu_count" in asked(reading)


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.25.1", "v0.25.1"),
        ("registry.example:5000/vllm/vllm-openai:v0.25.1@sha256:0123abcd", "v0.25.1"),
        ("vllm/vllm-openai@sha256:0123abcd", None),
        ("vllm/vllm-openai", None),
    ],
)
def test_a_version_is_the_tag_of_an_image_and_never_its_name_or_digest(read, image, version):
    assert read([{**SINGLE_NODE, "image": image}]).runs[0].get("version") == version


LINE = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "max_concurrency": 8,
    "sharegpt_output_len": None,
    "random_input_len": 1024,
    "random_output_len": 256,
    "duration": 10.0,
    "completed": 40,
    "total_input_tokens": 40_000,
    "total_output_tokens": 10_000,
    "total_output_tokens_retokenized": 9_990,
    "output_throughput": 1000.0,
    "mean_ttft_ms": 80.0,
}
"""A line of SGLang's bench_serving."""


def test_a_disaggregated_run_is_not_asked_for_what_it_states_itself(read):
    side = {"model_path": "Qwen/Qwen3-8B", "version": "0.5.6", "tp_size": 2, "kv_cache_dtype": "fp8_e4m3"}
    reading = read({**LINE, "server_info": {"prefill": [side], "decode": [{**side, "tp_size": 4}]}})
    stated = {"model", "version", "dataset", "isl_target", "osl_target", "max_concurrency", "requests_completed", "tp"}
    assert not stated & asked(reading)
    assert {"gpu", "weight_format", "kv_cache_dtype_resolved"} <= asked(reading)


def test_a_disaggregated_run_of_two_versions_has_none_of_its_own(read):
    side = {"model_path": "Qwen/Qwen3-8B", "version": "0.5.5"}
    run = read({**LINE, "server_info": {"prefill": [side], "decode": [{**side, "version": "0.5.6"}]}}).runs[0].as_dict()
    assert (run["model"], run.get("version")) == ("Qwen/Qwen3-8B", None)
    assert (run["prefill"]["version"], run["decode"]["version"]) == ("0.5.5", "0.5.6")


@pytest.mark.parametrize(
    ("stated", "targets"),
    [
        ({"dataset_name": "random"}, (1024, 256)),
        ({"dataset_name": "sharegpt"}, (None, None)),
        ({"dataset_name": "sharegpt", "sharegpt_output_len": 512}, (None, 512)),
        ({"dataset_name": "generated-shared-prefix"}, (None, None)),
        ({"dataset_name": None}, (None, None)),
    ],
)
def test_random_lengths_are_targets_of_random_datasets_only(read, stated, targets):
    assert values(read({**LINE, **stated}).runs[0], "isl_target", "osl_target") == targets


BLOCK = """
============ Serving Benchmark Result ============
{inside}Successful requests:                     40
Benchmark duration (s):                  10.00
Total generated tokens:                  10000
Output token throughput (tok/s):         1000.00
==================================================
"""


def test_a_console_names_the_framework_of_sglang_and_its_older_total(read):
    inside = "Backend:                sglang\nTotal throughput (tok/s):     5000.00\n"
    reading = read(BLOCK.format(inside=inside), "bench.log")
    assert values(reading.runs[0], "framework", "backend", "total_tok_s") == ("sglang", "sglang", 5000)
    assert "framework" not in asked(reading)


def test_a_console_of_an_older_vllm_states_the_load_before_the_block(read):
    first = "Traffic request rate: 2.0\nBurstiness factor: 1.0 (Poisson process)\nMaximum request concurrency: 32\n"
    second = "Traffic request rate: inf\nMaximum request concurrency: None\n"
    block = BLOCK.format(inside="")
    runs = read(first + block + second + block, "bench.log").runs
    assert values(runs[0], "request_rate_rps", "burstiness", "max_concurrency") == (2, 1, 32)
    assert values(runs[1], "request_rate_rps", "burstiness", "max_concurrency") == ("inf", None, None)
