"""Every way a case can go wrong, provoked on a CPU."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nvdash.smoke import runner
from nvdash.smoke.spec import CaseSpec, Layer

SMALL = CaseSpec("test", "reference", "nvfp4", (Layer("full", 4, 2, 64, 64),), limits_s={"prefill": 60.0})
CASE = [sys.executable, "-m", "nvdash.smoke.case"]


def run(mode: str, spec: CaseSpec = SMALL, **options):
    command = [sys.executable, str(Path(__file__).with_name("children.py")), mode]
    return runner.run_case(spec, command, **options)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def test_a_segfault_is_tried_again_with_synchronous_launches():
    (first, second), log = run("segfault")
    assert (first.ended, first.signal, first.phase, first.blocking) == ("signal", "SIGSEGV", "prefill", False)
    assert (second.signal, second.blocking) == ("SIGSEGV", True)
    assert "nvdash: once more, with synchronous launches" in log


def test_a_crash_that_synchronous_launches_heal_shows_as_one_of_two():
    (first, second), _ = run("heals")
    assert first.crashed and not second.crashed
    assert second.facts == {"outcome": "done"}


def test_a_hang_is_ended_at_the_limit_of_its_phase():
    began = time.monotonic()
    (only,), _ = run("hang", replace(SMALL, limits_s={"prefill": 1.0}))
    assert (only.ended, only.phase) == ("timeout", "prefill")
    assert time.monotonic() - began < 15


def test_a_case_that_is_killed_from_outside_is_not_tried_again():
    (only,), _ = run("killed")
    assert (only.ended, only.signal) == ("killed", "SIGKILL")


def test_half_a_report_is_no_report():
    attempts, _ = run("half")
    assert [attempt.ended for attempt in attempts] == ["half a report"] * 2


def test_the_exit_code_and_last_words_are_kept():
    attempts, log = run("exit")
    assert attempts[0].exit_code == 3
    assert "last words" in log


def test_a_hundred_megabytes_of_print_leave_a_bounded_log():
    (only,), log = run("chatter")
    assert only.ended == "facts"
    assert log[-1] == "the end"
    assert len(log) <= runner.LOG_LINES
    assert max(map(len, log)) <= runner.LINE_CHARS


@pytest.mark.parametrize("mode", ["grandchildren", "escaped"])
def test_processes_left_behind_are_ended(mode):
    (only,), log = run(mode)
    assert only.facts["outcome"] == "done"
    pid = int(next(line for line in log if line.startswith("left ")).split()[1])
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)


def test_cancelling_ends_the_case_at_once():
    cancel = threading.Event()
    seen = []

    def progress(state):
        seen.append(state.phase)
        if state.phase == "prefill":
            cancel.set()

    began = time.monotonic()
    (only,), _ = run("hang", progress=progress, cancel=cancel)
    assert only.ended == "cancelled"
    assert seen[-1] == "prefill"
    assert time.monotonic() - began < 15


def test_a_real_case_tells_its_phases_and_leaves_facts():
    lines = []
    attempts, log = runner.run_case(SMALL, CASE, progress=lambda state: lines.extend(state.lines))
    (only,) = attempts
    assert only.facts["outcome"] == "done"
    assert [row["phase"] for row in only.facts["phases"]] == ["import", "allocate", "prefill", "decode", "compare"]
    assert [line for line in log if line.startswith("nvdash: ")][-1] == "nvdash: compare"
    assert "nvdash: prefill" in lines


def test_memory_that_runs_out_inside_the_case_is_told_apart():
    command = ["bash", "-c", 'ulimit -v 1000000; exec "$@"', "limit", *CASE]
    (only,), _ = runner.run_case(replace(SMALL, block_size=2**24), command)
    assert only.facts["outcome"] == "oom"
    assert only.phase == "allocate"


def test_a_missing_engine_is_the_environment_and_no_crash():
    (only,), _ = runner.run_case(replace(SMALL, engine="sglang"), CASE)
    assert only.facts["outcome"] == "environment"


def test_a_case_process_imports_nothing_but_the_library_torch_and_itself(tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text(SMALL.to_json())
    code = (
        "import sys; from nvdash.smoke.case import main; main(sys.argv[1:]); "
        "tops = {name.partition('.')[0] for name in sys.modules if 'site-packages' in "
        "str(getattr(sys.modules[name], '__file__', None))}; print('TOPS', sorted(tops & {'yaml', 'pydantic', "
        "'duckdb', 'click', 'rich', 'streamlit', 'pandas', 'huggingface_hub', 'packaging', 'filelock'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(spec), str(tmp_path / "out.json")], capture_output=True, text=True, check=True
    )
    assert "TOPS []" in done.stdout


def test_a_spec_survives_the_trip():
    assert CaseSpec.from_json(SMALL.to_json()) == SMALL
