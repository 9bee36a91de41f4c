"""What a smoke report lets the support matrix believe, and what it does not."""

import json

import pytest

from nvdash import store as stored
from nvdash.store import smoke
from nvdash.store.observations import is_cuda_pass, observed

REPORT = {
    "engine": "vllm",
    "framework": "vllm",
    "release": "0.33.0",
    "arch": "sm120",
    "verdict": "pass",
    "layer": None,
    "reason": "",
    "requested": {"kv_cache_dtype": "nvfp4", "backend": None},
    "environment": {"device": "cuda"},
    "resolved": {"kv_cache_dtype": "nvfp4", "backend": "FLASHINFER", "weights": "bf16"},
    "stages": {"kv_write": {"tested": True}, "prefill": {"tested": True}, "decode": {"tested": False}},
    "scope": {"layers": [{"kind": "gqa", "head_size": 128, "value_head_size": 128}], "graphs": ["eager", "default"]},
    "attempts": [],
}


def seen(**changes):
    return list(observed({"smoke_id": "ab" * 32, **REPORT, **changes}))


def test_a_pass_validates_exactly_what_ran():
    first, second = seen()
    assert (first.graphs, second.graphs) == ("eager", "default")
    assert (first.verdict, first.level, first.layer, first.run) == ("validated", "traced", None, "abababab")
    assert first.stages == ("kv_write", "prefill")
    assert (first.backend, first.kv_cache_dtype, first.head_size, first.kind) == ("FLASHINFER", "nvfp4", 128, "gqa")


@pytest.mark.parametrize(
    ("verdict", "meaning"),
    [
        ("pass_dtype_unproven", ("validated", "served", None)),
        ("fallback", ("trap", "traced", "silent")),
        ("refused", ("refused", "served", None)),
        ("wrong_result", ("trap", "traced", "forward")),
    ],
)
def test_each_case_verdict_has_one_meaning(verdict, meaning):
    found = seen(verdict=verdict)[0]
    assert (found.verdict, found.level, found.layer) == meaning


@pytest.mark.parametrize("verdict", ["timeout", "oom", "no_trace", "environment", "crash"])
def test_what_proves_nothing_changes_nothing(verdict):
    assert seen(verdict=verdict) == []


def test_a_crash_counts_when_every_attempt_crashed():
    twice = [{"verdict": "crash"}, {"verdict": "crash"}]
    assert seen(verdict="crash", attempts=twice)[0].verdict == "trap"
    assert seen(verdict="crash", attempts=[{"verdict": "crash"}, {"verdict": "pass"}]) == []


def test_the_reference_engine_changes_nothing():
    assert seen(engine="reference") == []
    assert not is_cuda_pass({**REPORT, "engine": "reference"})
    assert is_cuda_pass(REPORT)


def test_a_fall_back_speaks_about_the_dtype_that_was_named():
    found = seen(verdict="fallback", resolved={"kv_cache_dtype": "fp8", "backend": "X"})[0]
    assert found.kv_cache_dtype == "nvfp4"


def test_observations_come_from_the_store_and_are_kept_beside_it(store):
    assert stored.observations("vllm", "sm120") == []
    assert not store.exists()
    smoke.add_smoke([(REPORT, {"engine": "vllm"})])
    assert len(stored.observations("vllm", "sm120")) == 2
    assert stored.observations("vllm", "sm90") == stored.observations("sglang", "sm120") == []
    kept = json.loads(store.with_name(f"{store.name}.observations.json").read_text())
    assert len(kept["rows"]) == 2
    smoke.add_smoke([({**REPORT, "release": "0.32.0"}, {"engine": "vllm"})])
    assert {row.release for row in stored.observations("vllm", "sm120")} == {"0.33.0", "0.32.0"}


def test_a_spoiled_keepsake_is_made_again(store):
    smoke.add_smoke([(REPORT, {"engine": "vllm"})])
    stored.observations("vllm", "sm120")
    store.with_name(f"{store.name}.observations.json").write_text("{broken")
    assert len(stored.observations("vllm", "sm120")) == 2
