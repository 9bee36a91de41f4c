"""The one journey of every test run: configuration, verdict, memory, upload, undo, smoke test."""

import json
import re

import pytest

from tests.pages.reading import seed

pytestmark = pytest.mark.browser


def own_result() -> tuple[str, bytes]:
    """A benchmark that the seed does not hold: the same file with another rate and duration."""
    name, content = seed("bench_serve_bf16.json")
    return name, json.dumps({**json.loads(content), "duration": 1.25, "output_throughput": 614.4}).encode()


def test_from_a_model_and_a_gpu_to_a_stored_run_and_a_smoke_report(visitor):
    visitor.open()
    visitor.choose("Model", "meta-llama/Llama-3.1-70B-Instruct")
    assert visitor.answer().startswith("It does not fit.")
    visitor.choose("GPU", "h200-sxm")
    visitor.reads("meta-llama/Llama-3.1-70B-Instruct on 1 × NVIDIA H200")
    visitor.choose("Weights", "fp8")
    assert visitor.answer().startswith("It fits")
    visitor.go("Memory")
    visitor.reads("Weights, fixed")
    # 80 layers x 8 KV heads x 2 x (64 + 8) B = 92,160 B per token
    visitor.reads(re.compile("92,?160 B per token"))

    visitor.go("Submit results")
    visitor.upload(own_result(), seed("serve.log"))
    visitor.reads("● Recognised")
    visitor.press("Submit run")
    visitor.reads(re.compile(r"✓ Stored as run [0-9a-f]{8}\."))
    stored = re.search(r"run ([0-9a-f]{8})", visitor.answer())
    assert stored
    assert "tiny-llama-dummy" in visitor.row(stored[1])
    visitor.press("Undo")
    visitor.reads(f"Run {stored[1]} is withdrawn.")

    visitor.go("Smoke tests")
    visitor.press("Run 1 case")
    visitor.main.get_by_text(re.compile("(Pass|Fell back|Wrong result|Crash)\\.")).first.wait_for(timeout=240_000)
    assert "● Pass." in visitor.main.inner_text()
    visitor.view("Last result")
    visitor.reads("Requested, resolved, observed")
    assert "stored as requested" in visitor.row("Cache dtype")
