"""Every NVFP4, FP8 and INT8 vector of the shared folder, under its own comparison rules."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_codec_meets_every_shared_vector_4over6_included(shared):
    check = shared / "acceptance" / "check_vectors.py"
    folder = str(shared / "vectors")
    done = subprocess.run(
        [sys.executable, str(check), "--project", str(ROOT), folder], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-2:] == ["4over6: 5 of 5 right", "44 of 44 cases right"], done.stdout


def test_the_committed_vectors_are_those_of_the_shared_folder(shared):
    for path in (ROOT / "tests/smoke/vectors").glob("*.json"):
        assert json.loads(path.read_text()) == json.loads((shared / "vectors" / path.name).read_text())
