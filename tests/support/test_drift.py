"""An installed engine's own answers against the matrix."""

import os
import stat

import pytest

from nvdash.errors import UsageError
from nvdash.readers.matrix import Matrix
from nvdash.support import drift
from nvdash.support.drift import Comparison, ask_installed, compare
from tests.support.conftest import row

CELL = {"backend": "A", "compute_capability": "12.0", "kv_cache_dtype": "fp8", "head_size": "128", "reasons": ""}


def cell(valid: str, **changed: str) -> dict[str, str]:
    return {**CELL, "valid": valid, **changed}


def test_cells_on_which_both_agree_are_counted_and_not_listed(make_matrix):
    rows = [row("yes", {"backend": "A", "arch": "sm120"}), row("no", {"backend": "A", "arch": "sm90"}, "refused")]
    cells = [cell("1"), cell("0", compute_capability="9.0")]
    assert compare(make_matrix(rows), "0.33.0", cells) == Comparison(2, (), {})


def test_a_disagreement_names_the_cell_and_the_statement(make_matrix):
    found = compare(make_matrix([row("no", {"backend": "A"}, "refused")]), "0.33.0", [cell("1")])
    drifts = found.drifts
    assert found.compared == 1
    assert (drifts[0].arch, drifts[0].engine_accepts, drifts[0].matrix, drifts[0].statement) == (
        "sm120",
        True,
        "refuses",
        "no",
    )


def test_a_trap_behind_the_selector_is_no_disagreement(make_matrix):
    rows = [
        row("trap", {"backend": "A"}, "trap", layer="constructor"),
        row("late", {"backend": "B"}, "refused", layer="forward"),
    ]
    assert compare(make_matrix(rows), "0.33.0", [cell("1"), cell("1", backend="B")]) == Comparison(2, (), {})


def test_a_cell_without_a_rule_is_counted_and_is_no_disagreement(make_matrix):
    assert compare(make_matrix([]), "0.33.0", [cell("0"), cell("1")]) == Comparison(0, (), {"A": 2})


def test_a_cell_that_the_engine_could_not_judge_is_not_compared(make_matrix):
    assert compare(make_matrix([]), "0.33.0", [cell("")]) == Comparison(0, (), {})


def test_the_latent_record_is_asked_as_mla(make_matrix):
    rows = [row("mla", {"backend": "A", "mla": True}), row("dense", {"backend": "A", "mla": False}, "refused")]
    assert compare(make_matrix(rows), "0.33.0", [cell("1", head_size="576"), cell("0")]) == Comparison(2, (), {})


def fake_python(tmp_path, body: str) -> str:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_the_installed_engine_names_its_release_in_the_header(tmp_path):
    head = "backend,compute_capability,kv_cache_dtype,head_size,valid,reasons,0.33.0+cpu"
    python = fake_python(tmp_path, f"echo '{head}'; echo 'A,12.0,fp8,128,1,'")
    release, rows = ask_installed(python)
    assert release == "0.33.0"
    assert [(line["backend"], line["valid"]) for line in rows] == [("A", "1")]


@pytest.mark.parametrize(("body", "expected"), [("echo boom >&2; exit 3", "boom"), ("exit 1", "no message")])
def test_an_engine_that_fails_is_reported_with_its_last_line(tmp_path, body, expected):
    with pytest.raises(UsageError, match=expected):
        ask_installed(fake_python(tmp_path, body))


def test_without_an_interpreter_the_variable_is_named(monkeypatch):
    monkeypatch.delenv("NVDASH_PYTHON_VLLM", raising=False)
    with pytest.raises(UsageError, match="NVDASH_PYTHON_VLLM"):
        ask_installed()
    with pytest.raises(UsageError, match="a Python that starts"):
        ask_installed("/no/such/python")


@pytest.mark.vllm_cpu
def test_the_probe_runs_under_a_real_vllm():
    if not os.environ.get("NVDASH_PYTHON_VLLM"):
        pytest.skip("NVDASH_PYTHON_VLLM names no vLLM")
    release, rows = ask_installed()
    assert Matrix().rules("vllm").release(release) is not None
    assert len(rows) > 5_000


def test_the_probe_needs_nothing_but_the_standard_library_and_vllm():
    import ast

    tree = ast.parse(drift.PROBE.read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("nvdash") for name in names)
    assert {name.partition(".")[0] for name in names} <= {"collections", "typing", "vllm"}
