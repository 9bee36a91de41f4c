"""A serving log replayed: the question it stands for, and predicted against printed."""

import json

import pytest
from click.testing import CliRunner

from nvdash.answers.memory import exit_code, memory
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


def test_fewer_tokens_are_another_rank(tmp_path):
    rows = rows_of(memory({"log": log(tmp_path, 80_000)}))
    assert rows["kv_tokens"]["consistent"] is False
    assert rows["kv_tokens"]["cause"].startswith("another rank is the limit: about 9.7")


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
