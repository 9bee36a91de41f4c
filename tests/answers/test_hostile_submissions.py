"""Hostile uploads on their way into the store: refused in words or stored whole, within time and memory.

They run in a process of their own, so that its peak memory is that of the uploads and of nothing else.
"""

import gzip
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nvdash.answers import submission
from nvdash.errors import NvdashError
from nvdash.store.connection import reading
from tests.readers import test_hostile as hostile

ROOT = Path(__file__).parents[2]
BENCH = hostile.FILES / "bench_serve_bf16.json"
LIMIT_S, LIMIT_MIB = 10.0, 1024
EVERY = 3
"""Of the damaged copies of our own files every third is tried here; `tests/readers` reads them all."""
TABLE = "isl,tok/s,name\n"


def made_up() -> Iterator[tuple[str, bytes]]:
    """Files that look like results up to where it hurts."""
    result = json.loads(BENCH.read_text())
    yield "million-itls", json.dumps({**result, "itls": [[0.001] * 1_000] * 1_000}).encode()
    yield "million-ttfts", json.dumps({**result, "ttfts": [0.01] * 10**6, "errors": [""] * 10**6}).encode()
    yield "thousands-of-runs", "\n".join(json.dumps({**result, "duration": n + 1.5}) for n in range(5_000)).encode()
    yield "same-run-often", "\n".join([json.dumps(result)] * 5_000).encode()
    yield "gzip-bomb", gzip.compress(b'{"itls": [' + b"0.001," * 60_000_000 + b"0]}", compresslevel=1)
    yield "long-name", json.dumps({**result, "model_id": "x" * 5_000_000}).encode()
    yield "deep-metadata", json.dumps({**result, "x": json.loads("[" * 60 + "]" * 60)}).encode()
    yield "table-rows", (TABLE + "".join(f"{n},2,<b>\n" for n in range(19_000))).encode()
    yield "table-of-more-rows", (TABLE + "1,2,<b>\n" * 99_000).encode()
    yield "table-columns", (",".join(f"c{n}" for n in range(50_000)) + "\n" + ",".join("1" * 50_000)).encode()
    yield "table-cells", (TABLE + '"' + "a" * 900_000 + '",1,2\n' + "nan,-1,inf\n").encode()


def smoke_reports() -> Iterator[tuple[str, bytes]]:
    """Our own smoke reports, damaged like any other file."""
    chance = random.Random(20261130)
    for path in sorted((ROOT / "data" / "smoke").glob("*.json"))[:3]:
        yield from ((f"{path.name}-{kind}", data) for kind, data in hostile.damaged(path.read_bytes(), chance))
        yield from ((f"{path.name}-{kind}", data) for kind, data in hostile.hostile_json(path))


def uploads() -> list[tuple[str, bytes]]:
    """Everything that is tried."""
    return [*made_up(), *smoke_reports(), *hostile.uploads()[::EVERY]]


def try_all(folder: Path) -> dict[str, float]:
    """Preview and submit every upload; the processor seconds of the slowest, the peak memory and what was stored."""
    slowest, stored, refused = ("", 0.0), 0, 0
    for number, (name, content) in enumerate(uploads()):
        path = folder / str(number) / "upload"
        path.parent.mkdir()
        path.write_bytes(content)
        mapping = {"isl": "isl_target", "tok/s": "output_tok_s"} if content.startswith(TABLE.encode()) else {}
        start = time.thread_time()
        before = rows()
        try:
            json.dumps(submission.preview([path], mapping=mapping), allow_nan=False)
            json.dumps(submission.submit([path], mapping=mapping), allow_nan=False)
            stored += 1
        except NvdashError as refusal:
            assert refusal.expected and refusal.found, name
            assert rows() == before, name
            refused += 1
        slowest = max(slowest, (name, time.thread_time() - start), key=lambda found: found[1])
        assert not orphans(), name
        path.unlink()
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    return {"slowest": slowest, "peak_mib": peak, "stored": stored, "refused": refused}


def rows() -> list[int]:
    """How many rows each table has."""
    tables = ("runs", "extras", "quality", "kernels", "samples", "submissions", "revisions", "smoke")
    with reading() as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in tables]


def orphans() -> list[str]:
    """Rows beside no run: the trace of half a submission."""
    query = " UNION ALL ".join(
        f"SELECT run_id FROM {table} ANTI JOIN runs USING (run_id)"
        for table in ("extras", "quality", "kernels", "samples", "submissions", "revisions")
    )
    with reading() as connection:
        return [row[0] for row in connection.execute(query).fetchall()]


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc, which is Linux")
def test_hostile_uploads_are_stored_whole_or_refused_in_words_within_time_and_memory(tmp_path):
    program = "import json, sys; from pathlib import Path; from tests.answers.test_hostile_submissions import try_all; "
    program += "print(json.dumps(try_all(Path(sys.argv[1]))))"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["stored"] + found["refused"] >= 200
    assert min(found["stored"], found["refused"]) > 20
    assert found["slowest"][1] < LIMIT_S, found["slowest"]
    assert found["peak_mib"] < LIMIT_MIB


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('<script>alert("x")</script>', '<script>alert("x")</script>'),
        ("'; DROP TABLE runs; --", "'; DROP TABLE runs; --"),
        ("=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0"),
        ("\u202ename\u0000", "name"),
        ("../../etc/passwd", "passwd"),
        ("/home/somebody/secret/sharegpt.json", "sharegpt.json"),
    ],
)
def test_what_is_typed_is_stored_as_text_without_its_place_and_runs_nothing(text, kept):
    run = submission.submit([BENCH], {"dataset": text, "workload": text})["added"][0]
    with reading() as connection:
        found = connection.execute("SELECT dataset FROM runs WHERE starts_with(run_id, ?)", [run]).fetchall()[0][0]
    assert found == kept


def test_a_typed_text_without_end_is_refused():
    with pytest.raises(NvdashError, match="at most 300 characters"):
        submission.submit([BENCH], {"dataset": "x" * 10**6})
    assert rows()[0] == 0
