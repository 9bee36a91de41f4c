"""The memory answer, from the question's words to the exit code."""

import json
import struct

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.answers.memory import exit_code, memory
from nvdash.cli import main
from nvdash.errors import UnknownError, UsageError

LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"
H200 = {"model": LLAMA_70B, "gpu": "H200 SXM", "framework": "vllm", "release": "0.33.0", "max_model_len": 32_768}


def given_pool(gib, **words):
    return memory({"model": LLAMA_70B, "release": "0.33.0", "max_model_len": 32_768, "available_kv_gib": gib, **words})


def test_seventy_billion_16_bit_weights_do_not_fit_one_h200():
    answer = memory({**H200, "weights": "bf16", "kv_cache_dtype": "nvfp4"})
    # 141,107,412,992 B of weights against 0.92 x 143,156 MiB = 138,101,150,187 B
    assert answer["kv_bytes_per_token"] == 92_160
    assert (answer["binding_pool"], answer["fits"], exit_code(answer)) == ("weights", False, 1)
    assert (answer["weights_bytes"], answer["weights_source"]) == (141_107_412_992, "estimated")
    assert answer["advice"][0].startswith("The weights bind: quantise the weights")
    assert any("NVFP4" in line for line in answer["advice"])


def test_weights_and_cache_are_never_one_number():
    answer = memory({**H200, "weights": "fp8", "kv_cache_dtype": "fp8", "tp": 4})
    kinds = {row["item"]: row["kind"] for row in answer["items"]}
    assert (kinds["weights"], kinds["kv_cache"]) == ("fixed", "grows")
    assert all(row["source"] for row in answer["items"])


@pytest.mark.parametrize(("flag", "low", "high"), [("bfloat16", 38, 44), ("fp8", 77, 88), ("nvfp4", 138, 158)])
def test_32k_requests_of_fp8_weights_on_four_h200(flag, low, high):
    # 2.5, 1.25 and 0.703125 GiB a request and rank, in what the budget's range leaves
    answer = memory({**H200, "weights": "fp8", "kv_cache_dtype": flag, "tp": 4, "context": 32_768, "concurrency": 8})
    held = answer["requests_that_fit"]
    assert (held["low"], held["high"]) == (low, high)
    assert (answer["binding_pool"], answer["kv_tokens"]) == ("none", None)
    size = answer["available_kv_bytes_low"] / 2**30 / {"bfloat16": 2.5, "fp8": 1.25, "nvfp4": 0.703125}[flag]
    assert int(size) == low


def test_a_given_pool_needs_neither_gpu_nor_weights():
    answer = given_pool(10.0, kv_cache_dtype="bfloat16")
    assert (answer["kv_tokens"], answer["kv_tokens_low"], answer["num_blocks"]) == (32_768, 32_768, 2048)
    assert (answer["max_concurrency"], answer["support"]) == (1.0, None)


def test_the_poorest_rank_decides():
    two = given_pool("10,5", kv_cache_dtype="bfloat16", pp=2)
    assert two["num_blocks"] == 2048
    assert two["limiting_rank"] == 1


def test_nothing_binds_until_a_load_is_stated():
    answer = given_pool(20.0)
    assert answer["binding_pool"] is None
    assert answer["binding_reason"] == "state your context and concurrency"


@pytest.mark.parametrize(("concurrency", "pool", "code"), [(2, "none", 0), (3, "cache", 1)])
def test_the_cache_binds_once_the_load_exceeds_the_pool(concurrency, pool, code):
    # two requests of 32,768 tokens take 20 GiB at 16 bits, and the pool keeps a block of its own
    answer = given_pool(20.1, context=32_768, concurrency=concurrency)
    assert (answer["binding_pool"], exit_code(answer)) == (pool, code)


def test_the_advice_for_a_binding_cache_says_what_each_format_holds_here():
    said = " ".join(given_pool(20.0, context=32_768, concurrency=3)["advice"])
    assert "FP8 would hold 2.00 × as many requests of 32,768 tokens" in said
    assert "NVFP4 would hold 3.56 ×" in said
    assert "not prefill speed" in said


def test_a_small_load_is_told_that_the_cache_matters_little():
    question = {**H200, "weights": "fp8", "tp": 4, "kv_cache_dtype": "fp8", "context": 1024, "concurrency": 1}
    assert "GiB of cache in use beside" in memory(question)["advice"][0]


def test_the_release_check_refuses_what_one_reserved_block_costs():
    # exactly one request fits; from 0.29.0 on the check holds one block of 5 MiB back
    new, old = (given_pool(10.0, release=release)["precheck"] for release in ("0.33.0", "0.28.0"))
    assert (new["refused"], new["since"], new["reserved_bytes"]) == (True, "0.29.0", 5_242_880)
    assert old is None


def test_a_start_that_is_refused_is_told_how_long_a_request_may_be():
    # 2,048 blocks of 16 tokens, one of them reserved: 2,047 x 16 = 32,752
    said = given_pool(10.0, context=1024, concurrency=1)["advice"]
    wanted = "The start-up check of one request of 32,768 tokens refuses: lower --max-model-len to 32752"
    assert said[0] == f"{wanted}, or give the cache more memory."
    assert not any("memory is not your limit" in line for line in said)
    passes = given_pool(10.0, max_model_len=32_752, context=1024, concurrency=1)
    assert passes["fits"] is True
    assert "memory is not your limit" in passes["advice"][0]


@pytest.mark.parametrize(("named", "noted"), [({}, True), ({"torch_dtype": "float16"}, False)])
def test_a_config_that_names_no_type_is_counted_at_16_bits_and_says_so(tmp_path, named, noted):
    shape = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "hidden_size": 256, **shape, **named}))
    answer = memory({"model": str(path), "release": "0.33.0", "available_kv_gib": 1.0, "max_model_len": 1024})
    # 2 layers x 2 KV heads x 64 values x 2 sides x 2 B
    assert answer["kv_bytes_per_token"] == 1024
    assert any("names no type: the cache is counted at 16 bits" in note for note in answer["notes"]) is noted


def test_auto_follows_the_checkpoint_and_says_so():
    answer = memory({"model": "nvidia/MiniMax-M2.5-NVFP4", "release": "0.33.0", "available_kv_gib": 10})
    assert answer["resolved"]["kv_cache_dtype"] == "fp8"
    assert any("auto becomes fp8" in note for note in answer["notes"])


def test_auto_is_not_known_where_the_checkpoints_config_was_not_read():
    answer = memory({"model": "nvidia/Llama-3.1-70B-Instruct-FP8", "release": "0.33.0", "available_kv_gib": 10})
    assert any("what auto becomes is unknown" in note for note in answer["notes"])


@pytest.mark.parametrize("word", ["bfloat16", "float16", "auto"])
def test_a_16_bit_word_means_the_models_own_type_in_every_release(word):
    assert given_pool(10.0, kv_cache_dtype=word, release="0.9.2")["kv_tokens"] == 32_768


def test_recalled_geometry_is_said():
    answer = memory({"model": "microsoft/phi-4", "release": "0.33.0", "available_kv_gib": 10})
    assert any("are recalled" in note for note in answer["notes"])


def test_a_missing_nvfp4_checkpoint_is_said():
    answer = memory({**H200, "model": "mistralai/Mistral-7B-v0.1", "weights": "nvfp4"})
    assert any("no nvfp4 checkpoint" in note for note in answer["notes"])


def test_an_unknown_gpu_total_leaves_the_answer_open():
    answer = memory({**H200, "gpu": "sm120", "weights": "fp8"})
    assert (answer["fits"], answer["kv_tokens"], exit_code(answer)) == (None, None, 3)
    assert answer["kv_bytes_per_token"] == 327_680


def test_the_vendor_range_decides_only_where_both_ends_agree():
    # 32 GB is 29.8 to 32 GiB; Qwen3-14B takes 27.5 GiB: neither end is certain
    answer = memory({"model": "Qwen/Qwen3-14B", "gpu": "rtx-pro-4500-server", "release": "0.33.0", "weights": "bf16"})
    assert answer["binding_pool"] is None
    assert exit_code(answer) == 3


@pytest.mark.parametrize(
    ("question", "where"),
    [
        ({"model": LLAMA_70B, "tp": 0}, "--tp"),
        ({"model": LLAMA_70B, "tp": 3}, "--tp"),
        ({"model": LLAMA_70B, "gpu_memory_utilization": 1.5}, "--gpu-memory-utilization"),
        ({"model": LLAMA_70B, "gpu_memory_utilization": float("nan")}, "--gpu-memory-utilization"),
        ({"model": LLAMA_70B, "available_kv_gib": "much"}, "--available-kv-gib"),
        ({"model": LLAMA_70B, "available_kv_gib": "nan"}, "--available-kv-gib"),
        ({"model": LLAMA_70B, "context": 200_000}, "--context"),
        ({"model": LLAMA_70B, "layers": 81}, "--layers"),
        ({"model": LLAMA_70B, "solve": "price"}, "--solve"),
        ({"model": LLAMA_70B, "tokens": 5}, "question 'tokens'"),
        ({"gpu": "H200 SXM"}, "--model"),
        ({"model": LLAMA_70B, "gpu": "H200", "weights": "fp8"}, "GPU 'H200'"),
    ],
)
def test_a_question_that_cannot_be_used_is_refused_by_its_flag(question, where):
    with pytest.raises(UsageError) as refusal:
        memory({"release": "0.33.0", **question})
    assert refusal.value.where == where


@pytest.mark.parametrize("framework", ["sglang", "tensorrt-llm", "trtllm"])
def test_other_engines_answer_whatever_release_is_named(framework):
    answer = memory({**H200, "framework": framework, "release": "main-nightly", "weights": "fp8", "tp": 4})
    assert answer["kv_tokens_low"] < answer["kv_tokens_high"]
    assert any("main-nightly is no release" in note for note in answer["notes"])
    assert answer["support"]["verdict"] == "unknown"


@pytest.mark.parametrize("release", ["0.2.5", "0.6.3", "0.9.2", "0.19.0", "0.34.0"])
def test_every_vllm_release_from_0_2_5_on_is_answered(release):
    answer = memory({**H200, "release": release, "weights": "fp8", "tp": 4})
    assert answer["kv_tokens_low"] > 0
    assert answer["rule"].startswith("vLLM")


def test_an_unknown_weight_format_is_unknown_with_the_nearest():
    with pytest.raises(UnknownError) as refusal:
        memory({**H200, "weights": "nvfp"})
    assert "nvfp4" in refusal.value.hint


@pytest.mark.parametrize(("flag", "format_"), [("modelopt_fp4", "nvfp4"), ("modelopt", "fp8"), ("bfloat16", "bf16")])
def test_a_quantisation_flag_names_the_format_of_its_checkpoints(flag, format_):
    assert memory({**H200, "weights": flag})["resolved"]["weights"] == format_


def test_a_format_of_unknown_size_leaves_the_weights_unknown():
    answer = memory({**H200, "weights": "gguf"})
    assert (answer["weights_bytes"], exit_code(answer)) == (None, 3)
    assert any("the weights are unknown" in note for note in answer["notes"])


def test_the_first_layers_alone_cost_their_share():
    assert given_pool(10.0, layers=40, kv_cache_dtype="bfloat16")["kv_bytes_per_token"] == 163_840


def test_solving_for_context_concurrency_gpus_and_dtype():
    pool = {"model": LLAMA_70B, "release": "0.33.0", "available_kv_gib": 100.0}
    context = memory({**pool, "solve": "context", "concurrency": 4})["solve"]
    assert (context["context_low"], context["context_high"]) == (81_904, 81_904)
    count = memory({**pool, "solve": "concurrency", "context": 32_768})["solve"]
    assert count["concurrency_low"] == 9  # ten would take every block, and one is the pool's own
    gpus = memory({**H200, "weights": "bf16", "kv_cache_dtype": "bfloat16", "solve": "gpus"})["solve"]
    assert gpus["gpus"] == 2
    formats = memory({**pool, "solve": "kv-cache-dtype", "context": 32_768, "concurrency": 15})["solve"]
    assert formats["kv_cache_dtype"] == "fp8"
    assert [row["fits"] for row in formats["formats"]] == [False, True, True]


def test_a_decode_step_is_bounded_by_what_it_must_read():
    question = {**H200, "weights": "fp8", "tp": 4, "kv_cache_dtype": "nvfp4", "context": 32_768, "concurrency": 10}
    bound = memory(question)["decode_bound"]
    # 10 x 32,768 x 23,040 B of cache, beside the weights without the embedding, at 4.8e12 B/s
    assert bound["cache_bytes"] == 7_549_747_200
    assert bound["step_ms_at_least"] == pytest.approx((bound["weights_bytes"] + 7_549_747_200) / 4.8e9, abs=1e-4)
    assert bound["label"].startswith("bound")


def test_a_folder_with_tensors_is_weighed_exactly(tmp_path):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 100,
        "max_position_embeddings": 1024,
        "torch_dtype": "bfloat16",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    header = json.dumps({"lm_head.weight": {"dtype": "BF16", "shape": [100, 64], "data_offsets": [0, 12_800]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(12_800))
    answer = memory({"model": str(tmp_path), "release": "0.33.0", "available_kv_gib": 1})
    assert (answer["weights_bytes"], answer["weights_source"]) == (12_800, "checkpoint")


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 400), st.sampled_from(["bfloat16", "fp8", "nvfp4"]), st.sampled_from([1, 2, 4, 8]))
def test_a_narrower_cache_never_holds_fewer_tokens(gib, flag, tp):
    wide = given_pool(gib, kv_cache_dtype="bfloat16", tp=tp)
    narrow = given_pool(gib, kv_cache_dtype=flag, tp=tp)
    assert narrow["kv_tokens"] >= wide["kv_tokens"]


def run(*words):
    return CliRunner().invoke(main, ["memory", *words])


def test_the_command_prints_json_whatever_the_exit_code():
    shown = run("--model", LLAMA_70B, "--gpu", "H200 SXM", "--release", "0.33.0", "--weights", "bf16", "--json")
    assert shown.exit_code == 1
    answer = json.loads(shown.stdout)
    assert answer["schema"] == "nvdash.memory/1"
    assert answer["question"]["max_model_len"] == 131_072


def test_the_text_says_first_whether_it_fits():
    words = ("--model", LLAMA_70B, "--available-kv-gib", "20", "--release", "0.33.0", "--max-model-len", "32768")
    shown = run(*words, "--context", "32768", "--concurrency", "3")
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    assert lines[0] == "It does not fit: 3 requests of 32,768 tokens exceed the pool."
    assert "KV cache, grows: 327,680 B = 320.0 KiB per token" in shown.stdout
    assert "80 full × 8 KV heads" in shown.stdout


def test_a_range_that_only_the_start_up_check_leaves_open_says_so():
    words = ("--model", "Qwen/Qwen3-8B", "--gpu", "RTX 5090", "--release", "0.33.0", "--context", "8192")
    first = run(*words).stdout.splitlines()[0]
    assert first.startswith(
        "Whether it fits is unknown: at the low end of the range this release refuses to start: one"
    )
    too_many = run(*words, "--concurrency", "64").stdout.splitlines()[0]
    assert too_many == "It does not fit: 64 requests of 8,192 tokens exceed the pool."


def test_an_open_format_is_not_called_none():
    words = ("--model", "Qwen/Qwen3-8B", "--gpu", "RTX 5090", "--context", "32768", "--concurrency", "8")
    assert (
        "Widest cache format that fits: unknown (auto no, fp8 no, nvfp4 unknown)"
        in run(*words, "--solve", "kv-cache-dtype").stdout
    )


def test_an_unknown_model_leaves_with_three_and_an_error_object():
    shown = run("--model", "no-such-model", "--available-kv-gib", "1", "--json")
    assert shown.exit_code == 3
    assert json.loads(shown.stdout)["error"]["where"] == "model 'no-such-model'"


@pytest.mark.parametrize(
    ("gpu", "dtype", "record"),
    [("H200 SXM", "fp8", 656), ("B200", "fp8", 576), ("rtx-pro-6000-ws", "auto", 656)],
)
def test_sparse_mla_is_sized_by_the_record_that_the_gpu_s_backend_stores(gpu, dtype, record):
    """61 layers, each a latent record and an index key of 128 + 4 B."""
    question = {"model": "deepseek-ai/DeepSeek-V3.2", "gpu": gpu, "tp": 8, "release": "0.33.0"}
    answer = memory({**question, "kv_cache_dtype": dtype})
    assert answer["kv_bytes_per_token"] == 61 * (record + 132)
    assert answer["resolved"]["kv_cache_dtype"] == answer["support"]["resolved"]["kv_cache_dtype"]
