"""Shapes beside the documented one: InferenceX rows as the API and its files give them."""

import pytest

from tests.readers.shapes import asked, values

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
