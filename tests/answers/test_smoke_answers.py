"""Smoke tests as a page and the command line ask for them."""

import json
import time

import pytest
from click.testing import CliRunner

from nvdash.answers import smoke
from nvdash.cli.smoke import command
from nvdash.errors import NvdashError
from nvdash.readers import smoke_report

QUICK = {"engine": "reference", "head_layout": "gqa:4/2x64", "kv_cache_dtype": "nvfp4"}


def until(job_id, wanted, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        state = smoke.poll(job_id)
        if wanted(state):
            return state
        time.sleep(0.05)
    raise AssertionError(smoke.poll(job_id))


@pytest.fixture
def engines(monkeypatch):
    for name in ("VLLM", "SGLANG", "FLASHINFER"):
        monkeypatch.delenv(f"NVDASH_PYTHON_{name}", raising=False)


def test_a_reference_case_passes_is_written_and_stored(tmp_path, engines):
    answer = smoke.run(QUICK, out=tmp_path / "report.json")
    # 2 KV heads: 64 + 8 bytes per side of 64 values; plus the layers of 128 and 256 that every reference case covers
    assert answer["cache"]["bytes_per_token"] == 2 * (2 * 36 + 2 * 72 + 2 * 144)
    assert answer["cache"]["formula_bytes_per_token"] == answer["cache"]["bytes_per_token"]
    assert (answer["verdict"], answer["question"]["kv_cache_dtype"]) == ("pass", "nvfp4")
    assert [row["name"] for row in answer["numbers"] if row["asserted"] and not row["passed"]] == []
    found = smoke_report.read(tmp_path / "report.json")
    assert smoke.observations(found) == []
    (stored,) = smoke.history()
    assert smoke.report(stored["smoke_id"][:8])["verdict"] == "pass"


def test_an_engine_that_is_not_set_up_says_what_to_set_and_stores_nothing(engines):
    answer = smoke.run({"engine": "vllm", "head_layout": "gqa:8/2x128"})
    assert answer["verdict"] == "environment"
    assert "NVDASH_PYTHON_VLLM" in answer["reason"]
    assert smoke.history() == []


def test_a_job_is_started_polled_and_cancelled(engines):
    first = smoke.start([QUICK, QUICK])
    assert smoke.start([QUICK]) == first, "another session is shown the job that runs"
    assert smoke.running() == first
    until(first, lambda state: state["phase"] == "prefill" or state["reports"])
    smoke.cancel(first)
    state = until(first, lambda state: state["state"] != "running")
    assert (state["state"], state["of"]) == ("cancelled", 2)
    assert smoke.running() is None


def test_a_job_that_runs_through_holds_its_reports(engines):
    job = smoke.start([{**QUICK, "kv_cache_dtype": "fp8"}])
    state = until(job, lambda state: state["state"] != "running")
    assert (state["state"], [row["verdict"] for row in state["reports"]]) == ("done", ["pass"])
    assert "nvdash: decode" in state["lines"]


def test_a_question_with_a_wrong_name_starts_nothing():
    with pytest.raises(NvdashError, match="no such name"):
        smoke.start([{**QUICK, "kv_cache_dtype": "fp5"}])
    assert smoke.poll("unknown") is None


def test_cases_say_why_they_cannot_run_here_and_how_elsewhere(engines):
    rows = smoke.cases({"framework": "vllm", "release": "0.33.0", "gpu": "sm120", "head_layout": "gqa:8/2x128"})
    reference = [row for row in rows if row["engine"] == "reference"]
    assert [row["question"]["kv_cache_dtype"] for row in reference] == ["bf16", "fp8", "nvfp4", "nvfp4_4over6"]
    assert {row["why_not"] for row in reference} == {None}
    real = [row for row in rows if row["engine"] == "vllm"]
    assert {row["why_not"] for row in real} == {"vllm: interpreter: NVDASH_PYTHON_VLLM is not set"}
    assert all(row["command"].startswith("./run smoke --framework vllm") for row in real)
    assert len({json.dumps(row["question"], sort_keys=True) for row in rows}) == len(rows)


def test_a_wide_cache_is_asked_for_by_name_as_in_the_plan(engines):
    asked = {"framework": "vllm", "release": "0.33.0", "gpu": "rtx-5090", "model": "meta-llama/Llama-3.1-8B-Instruct"}
    rows = {row["title"]: row for row in smoke.cases({**asked, "weights": "bf16", "kv_cache_dtype": "nvfp4"})}
    found = rows["Weights only on vLLM"]
    assert (found["question"]["kv_cache_dtype"], found["expect"]) == ("bfloat16", "expected")


def invoke(*words):
    return CliRunner().invoke(command, list(words))


def test_the_command_answers_json_with_its_question(engines, tmp_path):
    done = invoke(
        "--kv-cache-dtype", "bf16", "--head-layout", "gqa:4/2x64", "--out", str(tmp_path / "r.json"), "--json"
    )
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["schema"], answer["verdict"]) == (0, "nvdash.smoke/1", "pass")
    assert answer["question"]["kv_cache_dtype"] == "bf16"
    assert smoke_report.read(tmp_path / "r.json").verdict == "pass"


def test_the_text_says_that_the_reference_engine_proves_no_kernel(engines):
    done = invoke("--kv-cache-dtype", "nvfp4", "--head-layout", "gqa:4/2x64")
    assert done.stdout.startswith("● Pass")
    assert "It proves no kernel." in done.stdout
    assert "Not tested: any kernel of any framework" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--engine", "vllm", "--head-layout", "gqa:8/2x128"], 3, "Not set up here"),
        (["--preflight"], 1, "nvidia-smi"),
        (["--emit", "k8s", "--engine", "vllm", "--gpu", "B200"], 0, "kind: Job"),
        (["--emit", "slurm", "--engine", "vllm"], 0, "srun"),
        (["--kv-cache-dtype", "fp5"], 3, "no such name"),
        (["--head-layout", "x"], 2, "head layout"),
    ],
)
def test_exit_codes_and_words(engines, monkeypatch, words, code, said):
    monkeypatch.setattr("nvdash.smoke.preflight.ask_driver", lambda arguments: None)
    done = invoke(*words)
    assert done.exit_code == code
    assert said in done.output
