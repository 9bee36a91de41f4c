"""A serving log replayed: the question it stands for, and predicted against printed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nvdash.answers.memory import exit_code, memory
from nvdash.answers.memory_names import base_of
from nvdash.answers.memory_served import UNKNOWN_DRAFTER, UNREAD_PLATFORM
from nvdash.cli import main
from nvdash.errors import NvdashError, UsageError

# 20 GiB hold 10,240 blocks of 16 tokens of Llama-3.1-8B at 16 bits; the lines are worded as vLLM 0.11 prints them
LINES = (
    "INFO 11-20 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='{model}', "
    "max_seq_len=8192, tensor_parallel_size=1, kv_cache_dtype=auto",
    "INFO 11-20 10:00:09 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 5.1 seconds",
    "INFO 11-20 10:00:19 [gpu_worker.py:298] Available KV cache memory: 20.00 GiB",
    "INFO 11-20 10:00:19 [kv_cache_utils.py:1087] GPU KV cache size: {tokens:,} tokens",
    "INFO 11-20 10:00:19 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: {times:.2f}x",
)


def log(folder, tokens, model="meta-llama/Llama-3.1-8B-Instruct"):
    path = folder / "server.log"
    path.write_text("\n".join(LINES).format(tokens=tokens, times=tokens / 8192, model=model) + "\n")
    return str(path)


def rows_of(answer):
    return {row["number"]: row for row in answer["predicted_against_printed"]}


def test_a_log_states_its_own_question(tmp_path):
    answer = memory({"log": log(tmp_path, 163_840)})
    assert answer["question"]["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert (answer["question"]["release"], answer["question"]["max_model_len"]) == ("0.11.0", 8192)
    assert answer["question"]["log"] == "server.log"


def test_printed_numbers_inside_the_rounding_are_consistent(tmp_path):
    answer = memory({"log": log(tmp_path, 163_840)})
    rows = rows_of(answer)
    assert rows["kv_tokens"]["consistent"] and rows["max_concurrency"]["consistent"]
    # 19.995 and 20.005 GiB
    assert rows["kv_tokens"]["predicted"] == [163_792, 163_872]
    assert rows["weights_gib"]["consistent"]
    assert (exit_code(answer), answer["sentence"].startswith("Consistent")) == (0, True)


def test_the_budget_is_measured_where_the_log_prints_it(tmp_path):
    answer = memory({"log": log(tmp_path, 163_840)})
    items = {row["item"]: row for row in answer["items"]}
    assert {row["source"] for row in items.values()} == {"measured"}
    assert (items["kv_cache"]["bytes"], items["kv_cache"]["kind"]) == (20 * 2**30, "grows")
    assert items["weights"]["bytes"] / 2**30 == pytest.approx(14.9889)
    assert answer["allocated_bytes"] == 20 * 2**30


def test_twice_the_tokens_are_silent_fp8(tmp_path):
    answer = memory({"log": log(tmp_path, 327_680)})
    assert rows_of(answer)["kv_tokens"]["cause"] == "silent fp8: only one byte per value fits"
    assert answer["sentence"].endswith("agree only with this explanation: silent fp8: only one byte per value fits.")


def test_fewer_tokens_are_another_rank_where_there_is_one(tmp_path):
    rows = rows_of(memory({"log": log(tmp_path, 80_000), "tp": 2}))
    assert rows["kv_tokens"]["consistent"] is False
    assert rows["kv_tokens"]["cause"].startswith("another rank is the limit: about 4.8")
    assert rows_of(memory({"log": log(tmp_path, 80_000)}))["kv_tokens"]["cause"] is None


@pytest.mark.parametrize(
    "name",
    ["a/Llama-3.1-8B-Instruct-AWQ-INT4", "Meta-Llama-3.1-8B-quantized.w8a8", "meta-llama--Llama-3.1-8B-Instruct"],
)
def test_a_repackagers_name_finds_the_base_and_says_so(tmp_path, name):
    answer = memory({"log": log(tmp_path, 163_840, model=name)})
    assert (
        answer["question"]["model"].endswith("Llama-3.1-8B-Instruct") or "Llama-3.1-8B" in answer["question"]["model"]
    )
    assert any(note.startswith(f"{name} is not in the catalogue") for note in answer["notes"])
    assert rows_of(answer)["kv_tokens"]["consistent"] and "weights_gib" not in rows_of(answer)


def test_a_served_name_gives_way_to_the_folder_of_the_model(tmp_path):
    path = tmp_path / "server.log"
    served = "INFO 1-1 [utils.py:1] non-default args: {'model': '/models/Llama-3.1-8B-Instruct', 'served_model_name': "
    text = "\n".join(LINES).format(tokens=163_840, times=20.0, model="/models/Llama-3.1-8B-Instruct")
    path.write_text(f"{served}['chat']}}\n{text}\n")
    answer = memory({"log": str(path)})
    assert answer["question"]["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert (answer["server"]["model"], answer["server"]["model_folder"]) == ("chat", "Llama-3.1-8B-Instruct")
    assert any(note.startswith("chat is a name it is served under") for note in answer["notes"])


@pytest.mark.parametrize("name", ["deepseek-r1-distill-qwen-14b-awq", "someone/Llama-3.1-9B-AWQ", "AWQ"])
def test_another_size_or_family_is_no_repackaging(name):
    assert base_of(name, None) is None


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("x/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "meta-llama/Meta-Llama-3.1-70B"),
        ("DeepSeek-R1-0528-w8a8", "deepseek-ai/DeepSeek-R1"),
        ("x/Qwen3-VL-32B-Instruct-FP8", "Qwen/Qwen3-VL-32B-Instruct"),
        ("x/gemma-4-26B-A4B-it-qat-q4_0-unquantized", "google/gemma-4-26B-A4B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B"),
        ("Qwen2___5-3B-Instruct", "Qwen/Qwen2.5-3B-Instruct"),
    ],
)
def test_two_entries_of_one_shape_are_one_base(name, base):
    assert base_of(name, None) == base


def test_another_class_is_no_repackaging():
    assert base_of("x/Qwen3-8B-FP8", "Qwen3ForCausalLM") == "Qwen/Qwen3-8B"
    assert base_of("x/Qwen3-8B-FP8", "Qwen3ForSequenceClassification") is None


def test_a_build_without_tags_is_dated_by_its_numbers(tmp_path):
    path = tmp_path / "server.log"
    text = "\n".join(LINES).format(tokens=163_837, times=163_837 / 8192, model="meta-llama/Llama-3.1-8B-Instruct")
    path.write_text(text.replace("v0.11.0", "v0.1.dev1+g6804e1b81").replace("[kv_cache_utils.py:1087]", "[x.py:1]"))
    answer = memory({"log": str(path)})
    # no block holds an odd number of tokens: requests times length, as printed from 0.21 on
    assert any(note.startswith("0.1.dev1+g6804e1b81 is no release") for note in answer["notes"])
    assert answer["server"]["version"] == "0.1.dev1+g6804e1b81"
    assert rows_of(answer)["kv_tokens"]["consistent"]


DRAFTED = (
    "speculative_config=SpeculativeConfig(method='dflash', model='someone/Drafter', num_spec_tokens=15), "
    "max_seq_len=8192"
)


def test_a_drafter_of_unknown_layers_is_left_out_and_named(tmp_path):
    path = tmp_path / "server.log"
    text = "\n".join(LINES).format(tokens=100_000, times=100_000 / 8192, model="meta-llama/Llama-3.1-8B-Instruct")
    path.write_text(text.replace("max_seq_len=8192", DRAFTED))
    answer = memory({"log": str(path)})
    assert (answer["server"]["spec_method"], answer["server"]["draft_model"]) == ("dflash", "someone/Drafter")
    assert rows_of(answer)["kv_tokens"]["cause"] == UNKNOWN_DRAFTER
    assert any("dflash drafter (someone/Drafter)" in note for note in answer["notes"])


SGLANG = (
    "[2026-01-04 07:04:20] server_args=ServerArgs(model_path='/data/Qwen3-235B-A22B-W8A8', tp_size=16, dp_size=16, "
    "page_size=128, enable_dp_attention=True, kv_cache_dtype='auto', speculative_algorithm='EAGLE3', "
    "speculative_draft_model_path='/data/drafter', speculative_num_draft_tokens=4)",
    "[2026-01-04 07:04:24 DP0 TP0 EP0] KV Cache is allocated. #tokens: 156288, K size: 14.02 GB, V size: 14.02 GB",
    "[2026-01-04 07:04:24 DP0 TP0 EP0] Memory pool end. avail mem=8.97 GB",
    "[2026-01-04 07:04:57 DP0 TP0 EP0] KV Cache is allocated. #tokens: 156288, K size: 0.15 GB, V size: 0.15 GB",
    "[2026-01-04 07:04:57 DP0 TP0 EP0] Memory pool end. avail mem=2.86 GB",
    "[2026-01-04 07:05:24 DP0 TP0 EP0] max_total_num_tokens=156288, context_len=8192",
)


def test_data_parallel_attention_keeps_every_head_on_its_rank(tmp_path):
    path = tmp_path / "server.log"
    path.write_text("\n".join(SGLANG))
    answer = memory({"log": str(path)})
    # 94 layers x 2 x 4 heads x 128 x 2 B = 192,512 B on each rank: 16 tensor ranks share nothing
    assert answer["kv_bytes_per_token"] == 192_512
    assert (answer["server"]["attention_tp"], answer["server"]["draft_kv_allocated_gib"]) == (1, 0.3)
    assert rows_of(answer)["kv_tokens"]["consistent"] and rows_of(answer)["block_size"]["consistent"]
    assert "weights_gib" not in rows_of(answer)
    named = memory({"log": str(path), "draft_model": "Qwen/Qwen3-0.6B"})
    assert rows_of(named)["kv_tokens"] == rows_of(answer)["kv_tokens"]


def test_a_pool_of_a_platform_nobody_read_says_so(tmp_path):
    path = tmp_path / "server.log"
    options = "dp_size=16, attention_backend='ascend', "
    path.write_text("\n".join(SGLANG).replace("dp_size=16, ", options).replace("156288", "120832"))
    row = rows_of(memory({"log": str(path)}))["kv_tokens"]
    # the printed size is this rank's own pool: no other rank can be the cause
    assert (row["consistent"], row["cause"]) == (False, UNREAD_PLATFORM)
    path.write_text("\n".join(SGLANG).replace("156288", "120832"))
    assert rows_of(memory({"log": str(path)}))["kv_tokens"]["cause"] is None


@pytest.mark.parametrize(
    ("line", "group"),
    [
        ("Multiplying the GPU KV cache size by the dcp_world_size 8.", 8),
        ("Multiplying the GPU KV cache size by the cp_world_size 8 (pcp_world_size 2 * dcp_world_size 4).", 8),
    ],
)
def test_the_ranks_that_share_a_context_are_printed(tmp_path, line, group):
    path = tmp_path / "server.log"
    # DeepSeek-R1: 61 x 1,152 B per token, 4,497,408 per block of 64; 46.8 GiB are 11,173 of them, on each of 8 ranks
    path.write_text(
        "INFO 11-06 15:34:00 [core.py:76] Initializing a V1 LLM engine (v0.11.1) with config: "
        "model='deepseek-ai/DeepSeek-R1', max_seq_len=131072, tensor_parallel_size=8, kv_cache_dtype=auto\n"
        "(Worker_TP0 pid=6) INFO 11-06 15:34:58 [gpu_worker.py:349] Available KV cache memory: 46.80 GiB\n"
        f"(EngineCore_DP0 pid=5) INFO 11-06 15:34:59 [kv_cache_utils.py:1224] {line}\n"
        f"(EngineCore_DP0 pid=5) INFO 11-06 15:34:59 [kv_cache_utils.py:1229] GPU KV cache size: 5,720,576 tokens\n"
    )
    answer = memory({"log": str(path)})
    assert answer["question"]["dcp"] == group
    assert rows_of(answer)["kv_tokens"]["result"] == "consistent"


def test_a_pool_that_the_user_fixed_is_taken_to_the_byte(tmp_path):
    path = Path(log(tmp_path, 163_840))
    fixed = "Initial free memory 77.1 GiB, reserved 20.00 GiB memory for KV Cache as specified by kv_cache_memory_bytes"
    args = "INFO 11-20 10:00:00 [utils.py:1] non-default args: {'kv_cache_memory_bytes': 21474836480}\n"
    text = path.read_text().replace(
        "Available KV cache memory: 20.00 GiB", f"{fixed} config and skipped memory profiling."
    )
    path.write_text(args + text)
    answer = memory({"log": str(path)})
    assert rows_of(answer)["kv_tokens"]["predicted"] == [163_840, 163_840]
    assert answer["server"]["available_kv_gib"] == 20.0


def test_a_cpu_log_has_the_pool_of_its_environment_variable(tmp_path):
    path = tmp_path / "server.log"
    # Qwen2.5-0.5B: 24 x 2 x 64 x 2 x 2 B = 12,288 B per token; 4 GiB are 21,845 blocks of 16
    path.write_text(
        "(EngineCore_DP0 pid=8) INFO 10-23 18:38:40 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: "
        "model='Qwen/Qwen2.5-0.5B-Instruct', max_seq_len=32768, kv_cache_dtype=auto, device_config=cpu\n"
        "(EngineCore_DP0 pid=8) INFO 10-23 18:38:47 [kv_cache_utils.py:1087] GPU KV cache size: 349,520 tokens\n"
        "(EngineCore_DP0 pid=8) WARNING 10-23 18:38:52 [cpu.py:117] Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) "
        "for CPU backend is not set, using 4 by default.\n"
    )
    answer = memory({"log": str(path)})
    assert rows_of(answer)["kv_tokens"]["predicted"] == [349_520, 349_520]
    assert answer["server"]["platform"] == "cpu"


def test_an_ascend_log_has_blocks_of_128(tmp_path):
    path = tmp_path / "server.log"
    # Qwen3-8B: 36 x 8 x 128 x 2 x 2 B = 147,456 B per token, 18,874,368 per block of 128: 566 of them in 10,701,063,270
    path.write_text(
        "(EngineCore_DP0 pid=299) INFO 12-15 11:45:10 [core.py:76] Initializing a V1 LLM engine (v0.11.0) with config: "
        "model='Qwen/Qwen3-8B', max_seq_len=10000, tensor_parallel_size=1, kv_cache_dtype=auto\n"
        "(EngineCore_DP0 pid=299) INFO 12-15 11:45:19 [worker_v1.py:256] Available memory: 10701063270, total memory: "
        "31662800896\n"
        "(EngineCore_DP0 pid=299) INFO 12-15 11:45:19 [kv_cache_utils.py:1087] GPU KV cache size: 72,448 tokens\n"
    )
    assert rows_of(memory({"log": str(path)}))["kv_tokens"]["predicted"] == [72_448, 72_448]


def test_an_ascend_log_has_index_keys_of_16_bits(tmp_path):
    path = tmp_path / "server.log"
    # DeepSeek-V3.2: 61 x (1,152 + 256) = 85,888 B per token; 220,416 of them and a page are 17.641 GiB
    path.write_text(
        "[2026-01-04 05:54:20] server_args=ServerArgs(model_path='/d/DeepSeek-V3.2-W8A8', tp_size=4, page_size=128, "
        "attention_backend='ascend', kv_cache_dtype='auto')\n"
        "[2026-01-04 05:54:39 TP0] KV Cache is allocated. #tokens: 220416, KV size: 17.64 GB\n"
        "[2026-01-04 05:55:39 TP0] max_total_num_tokens=220416, context_len=8192\n"
    )
    rows = rows_of(memory({"log": str(path)}))
    assert rows["kv_tokens"]["result"] == rows["kv_bytes_per_token"]["result"] == "consistent"


def test_the_full_attention_pool_of_a_hybrid_is_compared_alone(tmp_path):
    path = tmp_path / "server.log"
    # gemma-3-1b: 4 full layers of 1 x 256 at 16 bits are 4,096 B, 22 windowed ones 22,528 B per slot
    path.write_text(
        "[2026-08-01 23:37:40] server_args=ServerArgs(model_path='google/gemma-3-1b-it', tp_size=1)\n"
        "[2026-08-01 23:40:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 800000, "
        "K size: 8.39 GB, V size: 8.39 GB\n"
        "[2026-08-01 23:40:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1000000, "
        "K size: 1.91 GB, V size: 1.91 GB\n"
        "[2026-08-01 23:43:42] max_total_num_tokens=1000000, context_len=32768\n"
    )
    rows = rows_of(memory({"log": str(path)}))
    assert rows["kv_tokens"]["consistent"] and rows["kv_bytes_per_token"]["predicted"] == [4096, 4096]


def test_memory_in_bytes_leaves_one_number(tmp_path):
    path = Path(log(tmp_path, 163_840))
    use = "INFO 11-20 10:00:39 [gpu_worker.py:391] Current kv cache memory in use is 21474836480 bytes.\n"
    path.write_text(path.read_text() + use)
    assert rows_of(memory({"log": str(path)}))["kv_tokens"]["predicted"] == [163_840, 163_840]


WHISPER = (
    "INFO 02-12 19:34:53 [core.py:96] Initializing a V1 LLM engine (v0.15.1) with config: "
    "model='openai/whisper-large-v3', max_seq_len=448{ranges}",
    "{total}INFO 02-12 19:35:57 [gpu_worker.py:356] Available KV cache memory: 10.14 GiB",
    "INFO 02-12 19:35:57 [kv_cache_utils.py:1307] GPU KV cache size: 33,216 tokens",
    "INFO 02-12 19:35:57 [kv_cache_utils.py:1312] Maximum concurrency for 448 tokens per request: 26.62x",
)


@pytest.mark.parametrize(
    "told",
    [
        {"ranges": ", compilation_config={'compile_ranges_split_points': [91, 2048]}", "total": ""},
        {"ranges": "", "total": "ValueError: Free memory on device (15.1/15.99 GiB) on startup\n"},
    ],
)
def test_the_tokens_of_a_step_come_from_the_compiler_or_the_device(tmp_path, told):
    path = tmp_path / "server.log"
    # a request of 448 tokens takes 28 + ceil(max(2048, 1500) / 16) = 156 of the 4,152 blocks: 26.62
    path.write_text("\n".join(WHISPER).format(**told))
    rows = rows_of(memory({"log": str(path)}))
    assert rows["max_concurrency"]["result"] == "consistent"


def test_the_type_of_states_that_a_log_states_counts(tmp_path):
    path = tmp_path / "server.log"
    # the catalogue has the FP8 checkpoint, whose config asks for 16-bit states; this one keeps them in float32
    path.write_text(
        "INFO 05-05 12:30:25 [utils.py:233] non-default args: {'model': 'nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16', "
        "'max_model_len': 49152, 'kv_cache_dtype': 'fp8_e4m3', 'enable_prefix_caching': False}\n"
        "INFO 05-05 12:30:33 [config.py:400] Updating mamba_ssm_cache_dtype to 'float32' for NemotronH model\n"
        "INFO 05-05 12:30:41 [core.py:107] Initializing a V1 LLM engine (v0.19.1) with config: kv_cache_dtype=fp8\n"
        "INFO 05-05 12:41:33 [gpu_worker.py:440] Available KV cache memory: 103.39 GiB\n"
        "INFO 05-05 12:41:33 [kv_cache_utils.py:1337] GPU KV cache size: 1,934,432 tokens\n"
        "INFO 05-05 12:41:33 [kv_cache_utils.py:1342] Maximum concurrency for 49,152 tokens per request: 216.94x\n"
    )
    rows = rows_of(memory({"log": str(path)}))
    assert rows["kv_tokens"]["result"] == rows["max_concurrency"]["result"] == "consistent"
    assert rows["block_size"]["predicted"] == [1952, 1952]


def test_a_benchmark_in_the_same_file_hides_no_server(tmp_path):
    path = Path(log(tmp_path, 163_840))
    path.write_text(path.read_text() + "============ Serving Benchmark Result ============\nSuccessful requests: 3\n")
    assert rows_of(memory({"log": str(path)}))["kv_tokens"]["consistent"]


def test_a_benchmark_without_a_server_is_refused(tmp_path):
    path = tmp_path / "console.log"
    path.write_text("============ Serving Benchmark Result ============\nSuccessful requests: 3\n")
    with pytest.raises(UsageError, match="console without server facts"):
        memory({"log": str(path)})


def test_more_tokens_than_anything_explains_exit_with_one(tmp_path):
    answer = memory({"log": log(tmp_path, 263_680)})
    assert rows_of(answer)["kv_tokens"]["cause"] is None
    assert exit_code(answer) == 1


def test_a_folder_name_finds_its_model(tmp_path):
    answer = memory({"log": log(tmp_path, 163_840, model="Llama-3.1-8B-Instruct")})
    assert answer["question"]["model"] == "meta-llama/Llama-3.1-8B-Instruct"


def test_a_model_that_is_not_known_is_asked_for(tmp_path):
    with pytest.raises(NvdashError) as refusal:
        memory({"log": log(tmp_path, 163_840, model="our-secret-model")})
    assert "--model" in refusal.value.hint


def test_a_file_that_is_no_log_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("no log at all\n")
    with pytest.raises(UsageError):
        memory({"log": str(tmp_path / "notes.txt"), "model": "Qwen/Qwen3-8B"})


def test_the_command_shows_the_table(tmp_path):
    shown = CliRunner().invoke(main, ["memory", "--log", log(tmp_path, 163_840)])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("Consistent: every printed number of server.log")
    as_json = CliRunner().invoke(main, ["memory", "--log", log(tmp_path, 163_840), "--json"])
    assert json.loads(as_json.stdout)["schema"] == "nvdash.memory/1"


def test_a_server_that_did_not_start_says_so_first(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(
        "INFO 11-20 10:00:19 [gpu_worker.py:298] Available KV cache memory: -2.14 GiB\n"
        "ERROR 11-20 10:00:20 [core.py:700] EngineCore failed to start.\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.\n"
    )
    answer = memory({"log": str(path), "model": "Qwen/Qwen3-8B"})
    assert answer["sentence"].startswith("This server did not start: no memory left for the KV cache (−2.14 GiB for")
    assert "the newest rules are used" in answer["notes"][0]
    assert exit_code(answer) == 3


def test_a_log_of_the_first_engine_is_replayed_by_its_rules(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(
        "INFO 03-01 10:00:19 worker.py:267] the current vLLM instance can use total_gpu_memory (79.15GiB) x "
        "gpu_memory_utilization (0.70) = 55.41GiB\n"
        "INFO 03-01 10:00:19 worker.py:267] model weights take 15.27GiB; non_torch_memory takes 0.09GiB; PyTorch "
        "activation peak memory takes 1.16GiB; the rest of the memory reserved for KV Cache is 38.89GiB.\n"
        "INFO 03-01 10:00:20 executor_base.py:111] # cuda blocks: 17698, # CPU blocks: 1820\n"
    )
    answer = memory({"log": str(path), "model": "Qwen/Qwen3-8B"})
    assert "the rules of 0.8.0 are used" in answer["notes"][0]
    # 36 layers x 2 x 8 heads x 128 x 2 B x 16 tokens = 2,359,296 B per block; 38.885 GiB hold 17,696, 38.895 17,701
    row = rows_of(answer)["num_blocks"]
    assert (row["predicted"], row["result"]) == ([17_696, 17_701], "consistent")


def test_the_explanation_stands_in_the_sentence_and_beside_each_number(tmp_path):
    answer = memory({"log": log(tmp_path, 327_680)})
    assert "agree only with this explanation: silent fp8" in answer["sentence"]
    row = rows_of(answer)["kv_tokens"]
    assert (row["label"], row["result"]) == ("KV cache tokens", "explained")
