"""The reports that come with the repository: readable, scrubbed, and what docs/status.md says they are."""

import re
from pathlib import Path

import pytest

from nvdash.readers import smoke_report

FOLDER = Path(__file__).parents[2] / "data/smoke"
REPORTS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_seed_report_reads_and_names_no_machine(path):
    report = smoke_report.read(path)
    assert not report.is_cuda
    assert re.search(r"/(home|root|tmp|work)/|\b\d+\.\d+\.\d+\.\d+\b|https?://", path.read_text()) is None
    if report.engine == "reference":
        assert report.verdict == "pass"


def test_what_the_status_page_says_of_vllm_is_what_the_reports_hold():
    found = {path.stem.removeprefix("vllm-cpu-"): smoke_report.read(path) for path in FOLDER.glob("vllm-cpu-*.json")}
    assert {name: (report.verdict, report.layer) for name, report in found.items()} == {
        "bf16": ("pass", None),
        "fp8": ("pass_dtype_unproven", None),
        "nvfp4-phantom": ("fallback", "silent"),
        "int8-phantom": ("fallback", "silent"),
        "backend-flashinfer": ("fallback", "silent"),
        "backend-unknown": ("refused", "config"),
        "windowed-model": ("pass", None),
    }
    status = (FOLDER.parents[1] / "docs/status.md").read_text()
    assert "No CUDA kernel path is validated in this store yet" in status
