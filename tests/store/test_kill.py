"""A writer that is killed loses no run it was told is stored, and tears none."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nvdash.store import runs
from nvdash.store.connection import reading

ROOT = Path(__file__).parents[2]
ROUNDS, WRITES = 12, 100
WRITER = """
import sys
from nvdash.store.adding import FileMark, NewRun, add
from nvdash.store.identity import run_id
for number in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
    values = {"model": "m", "output_tok_s": float(number + 1), "extra": number}
    quality = [{"task": f"t{part}", "metric": "acc", "value": 0.5} for part in range(3)]
    run = NewRun(run_id(values, quality), values, FileMark("f.json", "x"), quality)
    add([run])
    print(run.run_id, flush=True)
"""


def start(first, count=WRITES):
    words = [sys.executable, "-c", WRITER, str(first), str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.mark.full
def test_kill_9_during_100_writes_loses_no_acknowledged_run_and_tears_none(store):
    draw, acknowledged = random.Random(7), []
    for turn in range(ROUNDS):
        with start(turn * WRITES) as writer:
            told = [writer.stdout.readline().strip() for _ in range(draw.randrange(1, 12))]
            time.sleep(draw.uniform(0, 0.15))
            writer.send_signal(signal.SIGKILL)
            told += writer.stdout.read().split("\n")
        acknowledged += [line for line in told if len(line) == 64]
        stored = {run["run_id"] for run in runs.find(limit=None)}
        assert set(acknowledged) <= stored
    with reading() as database:
        parts = "(SELECT count(*) FROM quality q WHERE q.run_id = r.run_id),"
        parts += "(SELECT count(*) FROM extras e WHERE e.run_id = r.run_id),"
        parts += "(SELECT count(*) FROM submissions s WHERE s.run_id = r.run_id)"
        whole = database.execute(f"SELECT DISTINCT {parts} FROM runs r").fetchall()
        orphans = database.execute("SELECT count(*) FROM quality ANTI JOIN runs USING (run_id)").fetchall()
    assert whole == [(3, 1, 1)]
    assert orphans == [(0,)]
    assert len(acknowledged) >= ROUNDS


@pytest.mark.full
def test_four_processes_write_at_once_and_no_run_is_lost(store):
    writers = [start(number * WRITES, 25) for number in range(4)]
    told = [line for writer in writers for line in writer.communicate(timeout=240)[0].split()]
    assert {writer.returncode for writer in writers} == {0}
    assert len(set(told)) == 4 * 25
    assert runs.count() == 4 * 25
