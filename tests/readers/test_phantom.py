"""A cache flag that is accepted proves nothing: the real vLLM log that says nvfp4 and stores one byte per value."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nvdash.answers.read import read

FILES = Path(__file__).parent / "files"
PHANTOM = FILES / "llm_kv_nvfp4_phantom.log"
SIBLING = FILES / "metrics_after_bench.txt"
GQA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "vocab_size": 512,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 2048,
}
"""The geometry behind the log: 4 layers x 2 heads x 64 values x (key, value) = 1,024 values per token."""


def server(path: Path, sibling: Path | None = None) -> dict:
    return read([path], sibling)[0]["server"]


def test_the_log_alone_states_request_and_observation_and_judges_nothing():
    facts = server(PHANTOM)
    assert facts["kv_cache_dtype_requested"] == "nvfp4"
    assert facts["observed"]["kv_bytes_per_token"] == 1024  # 1 GiB / 1,048,576 tokens
    assert (facts["verdict"], facts["layer"]) == ("unknown", None)


def test_beside_a_sibling_with_a_16_bit_cache_the_request_is_a_silent_trap():
    facts = server(PHANTOM, SIBLING)
    assert facts["observed"]["kv_bytes_per_token"] == 1024
    assert facts["observed"]["values_per_token"] == 1024  # 2,048 B of the sibling in 2-byte values
    assert facts["observed"]["kv_bytes_per_token_as_requested"] == 576  # 1,024 x 4.5 bits
    assert (facts["verdict"], facts["layer"]) == ("trap", "silent")


def test_the_model_config_is_a_yardstick_as_well(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(GQA))
    facts = server(PHANTOM, config)
    assert facts["observed"]["kv_bytes_per_token_as_requested"] == 576
    assert (facts["verdict"], facts["layer"]) == ("trap", "silent")


def test_a_cache_of_the_size_that_was_asked_for_is_no_trap(tmp_path):
    log = tmp_path / "fp8.log"
    log.write_text(PHANTOM.read_text().replace("nvfp4", "fp8"))
    facts = server(log, SIBLING)
    assert facts["verdict"] == "unknown"
    assert "fp8_e4m3" in facts["observed"]["matches"]


def test_scales_per_head_that_have_no_room_make_a_trap(tmp_path):
    log = tmp_path / "int8.log"
    log.write_text(PHANTOM.read_text().replace("nvfp4", "int8_per_token_head"))
    assert server(log, SIBLING)["verdict"] == "trap"


def test_a_sibling_whose_tokens_are_not_blocks_times_block_size_proves_nothing(tmp_path):
    hybrid = tmp_path / "metrics.txt"
    hybrid.write_text(SIBLING.read_text().replace('kv_cache_size_tokens="524288"', 'kv_cache_size_tokens="600000"'))
    facts = server(PHANTOM, hybrid)
    assert facts["verdict"] == "unknown"
    assert "no single price" in facts["reason"]


@pytest.mark.parametrize("sibling", [[], ["--sibling", str(SIBLING)]])
def test_the_command_prints_a_bare_list_and_exits_with_0(sibling):
    done = subprocess.run(
        [sys.executable, "-m", "nvdash", "read", str(PHANTOM), *sibling, "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert [item["format"] for item in answer] == ["vllm-log"]
    assert answer[0]["server"]["verdict"] == ("trap" if sibling else "unknown")
