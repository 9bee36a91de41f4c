"""The real logs, scrapes and traces of vLLM on a CPU: two sound caches, two phantoms, one silent fallback."""

import pytest

from nvdash.smoke.readback import read_back
from nvdash.smoke.spec import Layer

TINY = [Layer("full", 8, 2, 64, 64)] * 4


@pytest.mark.parametrize(
    ("files", "verdict", "layer", "bytes_per_token"),
    [
        (["llm_auto.log", "metrics_after_bench.txt", "trace_decode_auto.min.json"], "pass", None, 2048),
        (["llm_auto.log", "trace_prefill_auto.min.json"], "pass", None, 2048),
        (["metrics_after_bench.txt"], "pass_dtype_unproven", None, 2048),
        (["llm_kv_fp8.log"], "pass_dtype_unproven", None, 1024),
        (["llm_kv_nvfp4_phantom.log"], "fallback", "silent", 1024),
        (["llm_kv_nvfp4_phantom.log", "trace_nvfp4_phantom.min.json"], "fallback", "silent", 1024),
        (["llm_kv_int8_per_token_head_phantom.log"], "fallback", "silent", 1024),
        (["llm_backend_flashinfer_on_cpu.log"], "fallback", "silent", 2048),
    ],
)
def test_what_the_files_of_a_run_prove(shared, files, verdict, layer, bytes_per_token):
    found = read_back(TINY, [shared / "samples/vllm-cpu" / name for name in files])
    assert (found["verdict"], found["layer"]) == (verdict, layer)
    assert found["observed"]["kv_bytes_per_token"] == bytes_per_token


def test_the_phantom_is_named_in_bytes(shared):
    found = read_back(TINY, [shared / "samples/vllm-cpu/llm_kv_nvfp4_phantom.log"])
    assert "576 bytes per token by the formula, 1,024 allocated" in found["reason"]
    assert "fp8_e4m3" in found["observed"]["same_bytes_as"]


def test_the_tensor_alone_gives_the_phantom_away(shared, tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_bytes((shared / "samples/vllm-cpu/trace_nvfp4_phantom.min.json").read_bytes())
    log = tmp_path / "server.log"
    log.write_text("INFO 11-29 18:44:23 [api_utils.py:286] non-default args: {'kv_cache_dtype': 'nvfp4'}\n")
    found = read_back(TINY, [trace, log])
    assert found["verdict"] == "fallback"
    assert "36 bytes per key row, the cache tensor is unsigned char [8192, 2, 128, 64]" in found["reason"]


def test_the_backend_that_ran_is_not_the_one_asked_for(shared):
    found = read_back(TINY, [shared / "samples/vllm-cpu/llm_backend_flashinfer_on_cpu.log"])
    assert found["requested"]["backend"] == "FLASHINFER"
    assert found["resolved"]["backend"] == "CPU_ATTN"


def test_launches_are_steps_times_layers(shared):
    found = read_back(TINY, [shared / "samples/vllm-cpu/trace_decode_auto.min.json"])
    assert [(row["phase"], row["what"], row["expected"], row["launches"]) for row in found["launches"]] == [
        ("prefill", "attention", 4, 4),
        ("prefill", "append", 4, 4),
        ("decode", "attention", 128, 128),
        ("decode", "append", 128, 128),
    ]
