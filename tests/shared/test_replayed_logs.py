"""`memory --log` over public start-up logs: what agrees, and what differs for a named cause."""

import pytest

from nvdash.answers.memory import exit_code, memory

LOGS = [
    # file, flags a log does not say, cause of its differences
    ("vllm-0.10.0-debug-breakdown.log", {"model": "meta-llama/Llama-3.2-1B-Instruct", "release": "0.10.0"}, ""),
    ("vllm-0.10.1.1-gptoss120b-tp4-ray-colour.log", {}, "possible: the engine pads"),
    ("vllm-0.10.1.1-qwen2-7b-1gpu-wrapped.log", {}, ""),
    ("vllm-0.10.1.1-qwen2-7b-tp2-duplicates.log", {}, ""),
    ("vllm-0.13.0-gemma3-1b-padding.log", {"model": "google/gemma-3-1b-it", "release": "0.13.0"}, "padding: 2 padding"),
    ("vllm-0.16.0-llama3-70b-awq-tp2.log", {"model": "TechxGenus/Meta-Llama-3-70B-Instruct-AWQ", "tp": 2}, ""),
    ("vllm-0.18.1rc1-qwen35-35b-fp8-gb10.log", {"model": "Qwen/Qwen3.5-35B-A3B-FP8"}, "states of fixed size"),
    ("vllm-0.20.0-qwen36-35b-nvfp4-wsl-docker-timestamps.log", {"model": "Qwen/Qwen3.6-35B-A3B"}, "silent fp8"),
    ("vllm-0.20.2rc1-glm-dcp8-mtp1.log", {"model": "zai-org/GLM-5.1"}, "a drafter (MTP, 1 per step)"),
    ("vllm-0.8-v0-phi4-bnb-indented.log", {"model": "microsoft/phi-4"}, ""),
    ("sglang-2025-01-llama8b-old-wording.log", {"model": "meta-llama/Llama-3.1-8B-Instruct"}, ""),
    ("sglang-2026-02-kimi-k25-tp8.log", {"model": "moonshotai/Kimi-K2.5"}, ""),
    ("trtllm-0.16.0-llama70b-tp8.log", {}, ""),
]


@pytest.mark.parametrize(("name", "flags", "cause"), LOGS, ids=[row[0] for row in LOGS])
def test_a_public_log_is_consistent_or_its_differences_have_a_cause(shared, name, flags, cause):
    answer = memory({"log": str(shared / "samples" / "logs" / name), **flags})
    rows = answer["predicted_against_printed"]
    causes = [row["cause"] for row in rows if row["cause"]]
    assert exit_code(answer) == 0
    assert any(row["consistent"] for row in rows)
    assert any(text.startswith(cause) for text in causes) if cause else not causes


def test_a_log_without_numbers_is_unknown(shared):
    path = shared / "samples" / "logs" / "vllm-0.11-rocm-failed-no-sizes.log"
    assert exit_code(memory({"log": str(path), "model": "Qwen/Qwen3-8B"})) == 3
