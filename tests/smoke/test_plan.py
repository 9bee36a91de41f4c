"""From a question to a spec: models cut to one layer of each kind, names checked, limits raised."""

import json

import pytest

from nvdash.errors import NvdashError, UnknownError
from nvdash.footprint.layers import layout
from nvdash.readers import catalogue
from nvdash.smoke.plan import case_of
from nvdash.smoke.spec import Layer
from nvdash.smoke.truncate import truncated

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "eos_token_id": 128001,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


def config_file(tmp_path, **changes):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, **changes}))
    return str(path)


def test_a_plain_model_is_cut_to_one_layer_with_few_words(tmp_path):
    spec = case_of({"engine": "vllm", "model": config_file(tmp_path), "kv_cache_dtype": "nvfp4"})
    assert spec.layers == (Layer("full", 32, 8, 128, 128),)
    assert spec.config is not None
    assert (spec.config["num_hidden_layers"], spec.config["vocab_size"], spec.config["eos_token_id"]) == (1, 16384, 0)
    assert (spec.whole, spec.kind) == (True, "gqa")


def test_a_model_with_windows_keeps_the_first_layer_of_each_kind(shared):
    config = json.loads((shared / "model-configs/google--gemma-3-1b-it.json").read_text())
    small, built = truncated(config)
    # five sliding layers, then a full one: the pattern of six
    assert small["num_hidden_layers"] == 6
    assert [cache.kind for cache in built.caches] == ["sliding"] * 5 + ["full"]


@pytest.mark.parametrize("name", [name for name, row in catalogue.load().model_rows.items() if row.get("config")])
def test_every_kind_of_layer_survives_the_cut(name):
    config = catalogue.load().model(name).config
    whole = layout(config)
    small, built = truncated(config)
    kinds = {(cache.kind, cache.kv_heads, cache.key_size, cache.window) for cache in whole.caches}
    assert {(cache.kind, cache.kv_heads, cache.key_size, cache.window) for cache in built.caches} == kinds
    assert built.num_layers < whole.num_layers
    assert all(value <= 8 for key, value in small.items() if key in ("num_experts", "n_routed_experts"))


def test_engines_without_a_model_cover_both_head_sizes():
    spec = case_of({"kv_cache_dtype": "nvfp4"})
    assert spec.engine == "reference"
    assert [layer.key_size for layer in spec.layers] == [128, 256]
    windowed = case_of({"head_layout": "gqa:64/8x64,window=128"})
    assert [(layer.kind, layer.key_size) for layer in windowed.layers] == [
        ("full", 64),
        ("window", 64),
        ("full", 128),
        ("full", 256),
    ]


def test_a_record_format_asks_for_a_latent_layer():
    spec = case_of({"kv_cache_dtype": "nvfp4_ds_mla"})
    assert [(layer.kind, layer.key_size, layer.value_size) for layer in spec.layers] == [("mla", 576, 512)]


def test_a_layout_that_no_plain_model_has_needs_a_config_file():
    spec = case_of({"engine": "vllm", "head_layout": "mla:16/1x576/512"})
    assert spec.config is None


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"engine": "vlm"}, "did you mean vllm"),
        ({"kv_cache_dtype": "nvpf4"}, "did you mean nvfp4"),
        ({"head_layout": "gqa:64x128"}, "KIND:QUERY_HEADS/KV_HEADSxKEY_SIZE"),
        ({"model": "no/such-model"}, "no/such-model"),
    ],
)
def test_names_that_do_not_exist_are_refused_with_the_next_step(question, words):
    with pytest.raises(NvdashError) as refused:
        case_of(question)
    assert words in str(refused.value)


def test_limits_can_be_raised_for_slow_builds(monkeypatch):
    monkeypatch.setenv("NVDASH_SMOKE_SECONDS", "1200")
    assert set(case_of({}).limits_s.values()) == {1200.0}
    monkeypatch.setenv("NVDASH_SMOKE_SECONDS", "long")
    with pytest.raises(NvdashError, match="whole seconds"):
        case_of({})


@pytest.mark.parametrize(("word", "hint"), [("nvfp", "did you mean nvfp4"), ("nope", "known: bf16, fp8_e4m3")])
def test_an_unknown_cache_dtype_is_refused_with_names_that_exist(word, hint):
    with pytest.raises(UnknownError) as refusal:
        case_of({"engine": "reference", "kv_cache_dtype": word})
    assert refusal.value.hint.startswith(hint)
    assert refusal.value.exit_code == 3
