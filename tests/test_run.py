"""`./run COMMAND` from another folder: the file that the caller names is the one that is read."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
needs_set_up = pytest.mark.skipif(
    not (ROOT / ".venv" / "nvdash-stamp").is_file(), reason="./run has not set this checkout up"
)


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "run", *words], cwd=folder, capture_output=True, text=True, timeout=120)


@needs_set_up
def test_a_file_is_named_from_where_the_caller_stands(tmp_path):
    (tmp_path / "mine.json").write_text("")
    done = run("read", "mine.json", "--json", folder=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout)[0]["error"]["found"] == "found an empty file"


@needs_set_up
def test_a_module_in_the_caller_s_folder_shadows_none_of_ours(tmp_path):
    (tmp_path / "nvdash.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "click.py").write_text("raise SystemExit('shadowed')")
    done = run("check", "--gpu", "sm120", "--head-layout", "gqa:32/8x128", "--weights", "bf16", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
