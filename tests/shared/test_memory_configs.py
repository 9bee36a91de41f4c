"""Every stored config is answered for every engine, or refused by name; never a traceback."""

import pytest

from nvdash.answers.memory import exit_code, memory
from nvdash.cli.memory_text import memory_lines
from nvdash.errors import NvdashError


@pytest.mark.parametrize("framework", ["vllm", "sglang", "tensorrt-llm"])
def test_every_config_is_answered_or_refused_by_name(shared, framework):
    answered = refused = 0
    for path in sorted((shared / "model-configs").glob("*.json")):
        question = {"model": str(path), "gpu": "b200", "framework": framework, "context": 1024, "concurrency": 2}
        try:
            answer = memory({**question, "release": "0.33.0", "kv_cache_dtype": "fp8"})
        except NvdashError as refusal:
            assert refusal.where and refusal.expected and refusal.found
            refused += 1
            continue
        assert exit_code(answer) in (0, 1, 3)
        assert list(memory_lines(answer))
        answered += 1
    assert answered > 100
    assert refused < 30
