"""The FlashInfer adapter: its plan and writes on a CPU against a stand-in, and the real library on a GPU."""

import sys
from pathlib import Path

import pytest
import torch

from nvdash.smoke import runner
from nvdash.smoke.engines.flashinfer import page_plan
from nvdash.smoke.spec import CaseSpec, Layer

FAKE = {"PYTHONPATH": f"{Path(__file__).parents[2]}:{Path(__file__).parent / 'fake_flashinfer'}"}
CASE = [sys.executable, "-m", "nvdash.smoke.case"]
LAYERS = (Layer("full", 4, 2, 64, 64), Layer("window", 4, 2, 64, 64, 50))


def facts(dtype: str, order: str = "HND", **environment: str):
    spec = CaseSpec("test", "flashinfer", dtype, LAYERS, order=order, device="cpu")
    (only,), _ = runner.run_case(spec, CASE, environment={**FAKE, **environment})
    return only.facts


def test_pages_of_two_sequences_are_planned_by_hand():
    starts, pages, last = page_plan([33, 16], [torch.tensor([7, 2, 9, 4]), torch.tensor([5])], 16)
    assert (starts.tolist(), pages.tolist(), last.tolist()) == ([0, 3, 4], [7, 2, 9, 5], [1, 16])


@pytest.mark.parametrize(
    ("dtype", "order", "bytes_per_token"),
    [("bf16", "NHD", 1024), ("fp8", "HND", 512), ("nvfp4", "HND", 288)],
)
def test_the_adapter_writes_plans_and_reads_what_the_independent_path_sees(dtype, order, bytes_per_token):
    found = facts(dtype, order)
    assert found["outcome"] == "done", found.get("trace")
    assert [row["name"] for row in found["numbers"] if row["passed"] is False] == []
    # two layers of 2 KV heads of 64: 2 x 2 x 2 x 64 = 512 values per token
    assert found["cache"]["bytes_per_token"] == bytes_per_token
    assert found["trace"]["steps"] == {"prefill": 8, "decode": 32}


def test_a_reader_that_takes_its_neighbours_scales_is_caught():
    found = facts("nvfp4", "NHD", FAKE_FLASHINFER_BUG="scales")
    wrong = {row["name"] for row in found["numbers"] if row["asserted"] and row["passed"] is False}
    assert wrong == {
        "relative L2, kernel to FP32 on the stored cache",
        "values wrong, blocks of distinct powers of two",
    }


def test_formats_the_adapter_does_not_cover_are_no_verdict_on_flashinfer():
    assert facts("int8_per_token_head")["outcome"] == "environment"


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bf16", "fp8", "nvfp4"])
def test_flashinfer_really_runs(dtype):
    pytest.importorskip("flashinfer")
    spec = CaseSpec("gpu", "flashinfer", dtype, (Layer("full", 8, 2, 128, 128), Layer("full", 8, 2, 256, 256)))
    attempts, _ = runner.run_case(spec, CASE)
    assert attempts[-1].facts["outcome"] in ("done", "refused")
