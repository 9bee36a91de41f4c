"""Uploads that want to hurt: none raises, none takes long, none makes half a run.

Two hundred and more files are made from our own fixtures by damaging them in every way that was thought of; a fixed
seed makes a failure repeatable.
"""

import gzip
import io
import json
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nvdash.readers.bundle import read_file
from nvdash.readers.source import MAX_UNPACKED_BYTES

FILES = Path(__file__).parent / "files"
SOUND = sorted(path for path in FILES.iterdir() if path.suffix != ".txt" or path.name.startswith("own"))
NASTY = [
    '<script>alert("x")</script>',
    "'; DROP TABLE runs; --",
    "=cmd|' /C calc'!A0",
    "\u202ename\u0000",
    "%s%n{0}",
    "../../etc/passwd",
]
LIMIT_S = 10.0


def in_every_text(value: object, text: str) -> object:
    """The JSON value with this text in place of every text."""
    if isinstance(value, dict):
        return {key: in_every_text(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_every_text(inner, text) for inner in value]
    return text if isinstance(value, str) else value


def with_numbers(value: object, number: object) -> object:
    """The JSON value with this number in place of every number."""
    if isinstance(value, dict):
        return {key: with_numbers(inner, number) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_numbers(inner, number) for inner in value]
    return number if isinstance(value, int | float) and not isinstance(value, bool) else value


def damaged(content: bytes, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """The content cut, flipped, recoded, doubled."""
    yield "cut", content[: chance.randrange(1, len(content))]
    flipped = bytearray(content)
    for _ in range(8):
        flipped[chance.randrange(len(flipped))] = chance.randrange(256)
    yield "flipped", bytes(flipped)
    yield "utf-16", content.decode().encode("utf-16")
    yield "latin-1", content + "é".encode("latin-1")
    yield "twice", content + content
    yield "gzip-cut", gzip.compress(content)[:-9]


def hostile_json(path: Path) -> Iterator[tuple[str, bytes]]:
    """A JSON file with nasty texts, impossible numbers and wrong types in every place."""
    value = json.loads(path.read_text().splitlines()[0] if path.suffix == ".jsonl" else path.read_text())
    for number, text in enumerate(NASTY):
        yield f"text{number}", json.dumps(in_every_text(value, text)).encode()
    for number in (-1, 1e308, 10**400, float("nan"), float("inf"), [], {"a": 1}, "x" * 100, None, True):
        yield f"number-{str(number)[:8]}", json.dumps(with_numbers(value, number)).encode()
    yield "duplicate", b'{"a": 1, "a": 2, ' + json.dumps({"b": value}).encode()[1:]
    yield "nested", b'{"x": ' * 5_000 + b"1" + b"}" * 5_000


def made_up() -> Iterator[tuple[str, bytes]]:
    """Files that never were a result."""
    yield "empty", b""
    yield "spaces", b" \n\t\n"
    yield "binary", bytes(range(256)) * 64
    yield "brackets", b"[" * 100_000
    yield "million-zeros", b"[" + b"0," * 1_000_000 + b"0]"
    yield "million-objects", b"[" + b"{}," * 1_000_000 + b"{}]"
    yield "million-keys", b"{" + b",".join(b'"%d":0' % n for n in range(1_000_000)) + b"}"
    yield (
        "million-values",
        json.dumps({"duration": 1, "request_throughput": [1] * 10**6, "total_token_throughput": 1}).encode(),
    )
    yield (
        "long-digits",
        b'{"duration": ' + b"9" * 1_000_000 + b', "request_throughput": 1, "total_token_throughput": 1}',
    )
    yield "open-quotes", b'{"a": ' + b'"\\' * 500_000
    yield "long-line", b"GPU KV cache size: " + b"1" * 5_000_000
    yield "long-log", b"(EngineCore pid=1) INFO 07-10 22:31:48 [kv_cache_utils.py:2146] nothing new\n" * 100_000
    yield "metrics-nan", b'vllm:num_preemptions_total{a="b"} NaN\nvllm:kv_cache_usage_perc{} +Inf\n'
    yield "csv-wide", b"routine,median_time," + b"x," * 200_000 + b"\n" + b"1," * 200_000
    yield "csv-quote", b'Metric,avg\n"' + b"a" * 3_000_000
    yield "yaml-bomb", b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\nbenchmarks:\n- type_: generative_benchmark\n"
    yield "trace-cut", b'{"traceEvents": [{"name": "k", "cat": "kernel", "dur": 1}, {"name": '
    yield "trace-wrong", b'{"traceEvents": [1, "x", null, {"name": 3, "cat": "kernel", "dur": "y"}, {"cat": "kernel"}]}'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b"0" * 10**7)
    yield "zip", packed.getvalue()
    yield "gzip-in-gzip", gzip.compress(gzip.compress(b'{"a": 1}'))


def uploads() -> list[tuple[str, bytes]]:
    """Every hostile upload by name."""
    chance = random.Random(20261129)
    found = list(made_up())
    for path in SOUND:
        content = path.read_bytes()
        found += [(f"{path.name}-{kind}", damage) for kind, damage in damaged(content, chance)]
        if path.suffix in (".json", ".jsonl"):
            found += [(f"{path.name}-{kind}", damage) for kind, damage in hostile_json(path)]
    return found


def test_hostile_uploads_are_read_or_refused_but_never_raise(tmp_path):
    files = uploads()
    assert len(files) > 200
    for name, content in files:
        path = tmp_path / "upload"
        path.write_bytes(content)
        start = time.thread_time()
        reading = read_file(path)
        answer = reading.as_dict()
        assert time.thread_time() - start < LIMIT_S, name
        json.dumps(answer, allow_nan=False)
        if reading.error:
            assert answer["error"]["expected"] and answer["error"]["found"], name
            assert not reading.runs and not reading.quality and not reading.kernels, name


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "empty"),
        (b'{"a": 1', "ends inside"),
        (b'{"duration": NaN, "request_throughput": 1, "total_token_throughput": 1}', "NaN is not a measurement"),
        (b'{"duration": -1, "request_throughput": 1, "total_token_throughput": 1}', "-1"),
        (b'{"duration": 1, "duration": 2}', "stands twice"),
        (b'{"a": "\xff"}', "byte 7 is not"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b"hello world\n", "found none"),
        (b'{"x": ' * 70 + b"1" + b"}" * 70, "deeper nesting"),
    ],
)
def test_a_refusal_says_what_was_found(tmp_path, content, found):
    path = tmp_path / "upload.json"
    path.write_bytes(content)
    error = read_file(path).error
    assert error is not None
    assert found in error.found


def test_a_file_in_no_known_format_is_refused_with_the_list_of_those_that_are(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("isl,osl,speed\n1,2,3\n4,5,6\n")
    error = read_file(path).error
    assert error is not None
    assert "what its columns hold" in error.hint
    assert "vllm bench serve" in error.hint and "lm-evaluation-harness" in error.hint


def measured(path: Path) -> tuple[float, float, dict]:
    """Processor seconds, peak MiB and the answer of a read in a process of its own."""
    program = (
        "import json, sys, time, psutil; from pathlib import Path; from nvdash.readers.bundle import read_file;"
        "start = time.process_time(); answer = read_file(Path(sys.argv[1])).as_dict();"
        "seconds = time.process_time() - start; status = Path('/proc/self/status');"
        "peak = int(status.read_text().split('VmHWM:')[1].split()[0]) / 1024 if status.exists()"
        " else psutil.Process().memory_info().rss / 2**20;"
        "print(json.dumps([seconds, peak, answer]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


def test_200_mb_of_per_request_arrays_need_the_memory_of_their_summary(tmp_path):
    result = json.loads((FILES / "bench_serve_bf16.json").read_text())
    gaps = "[" + ",".join(f"0.00{n:015d}" for n in range(500)) + "]"
    text = json.dumps({**result, "itls": "HERE", "generated_texts": ["a secret \\n answer"] * 20_000})
    path = tmp_path / "detailed.json"
    path.write_text(text.replace('"HERE"', "[" + ",".join([gaps] * 19_800) + "]"))
    assert 190e6 < path.stat().st_size < 205e6
    seconds, mib, answer = measured(path)
    assert answer["runs"][0]["ttft_mean_ms"] == 39.809045333318714
    assert seconds < LIMIT_S
    assert mib < 300


SLOW = [
    b"\n" * 250_000 + b"x",
    b"Time " + b" " * 1_000_000 + b"x",
    "█".encode() * 5_000 + b" version x",
    b"preempt" * 2_000,
    b"\x1b]" * 8_000 + b"EngineCore",
    b"1" * 16_000 + b" KV cache is needed",
    b"Using " * 2_500 + b"backend",
    b"[TRT-LLM] Model: a" + b" " * 16_000 + b"b",
    b"Model: a" + b" " * 16_000 + b"b",
    b"args = Namespace(routine='a'" * 30_000,
    b"|   0  NVIDIA " + b" " * 100_000 + b"x",
    b"vllm:x{" + b"}" * 100_000,
]
"""Lines on which a careless regular expression takes minutes."""
OPENERS = [
    b"GPU KV cache size: 1,000 tokens\n",
    b"[TensorRT-LLM][INFO] x\n= PERFORMANCE OVERVIEW\n",
    b"[TensorRT-LLM][INFO] Number of tokens per block: 64.\n",
    b"max_total_num_tokens=5\n",
    b"[INFO] FlashInfer version: 0.6.2\n",
    b"| NVIDIA-SMI 580.1\n",
    b"Metric,avg\n",
    b"=== Serving Benchmark Result ===\n",
    b"# TYPE x counter\n",
    b"",
]


@pytest.mark.parametrize("opener", OPENERS, ids=lambda opener: opener[:20].decode().strip() or "nothing")
def test_no_line_makes_a_pattern_run_away(tmp_path, opener):
    path = tmp_path / "slow.txt"
    path.write_bytes(opener + b"\n".join(SLOW) + b"\n")
    start = time.thread_time()
    read_file(path).as_dict()
    assert time.thread_time() - start < 3.0


def test_a_gzip_bomb_stops_at_the_limit(tmp_path):
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as bomb:
        for _ in range(MAX_UNPACKED_BYTES // 10**7 + 2):
            bomb.write(b"0" * 10**7)
    seconds, mib, answer = measured(path)
    assert answer["error"]["found"] in ("found more", "reading it took longer")
    assert seconds < LIMIT_S
    assert mib < 300


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("NVDASH_MAX_UPLOAD_MIB", "1")
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (2**20 + 1))
    error = read_file(path).error
    assert error is not None
    assert error.expected == "at most 1,048,576 bytes"


def test_gzip_is_unpacked(tmp_path):
    path = tmp_path / "result.json.gz"
    path.write_bytes(gzip.compress((FILES / "bench_serve_bf16.json").read_bytes()))
    assert read_file(path).runs[0].get("requests_completed") == 24


@pytest.mark.parametrize("text", NASTY)
def test_a_nasty_model_name_is_a_text_without_its_control_characters(tmp_path, text):
    result = json.loads((FILES / "bench_serve_bf16.json").read_text())
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**result, "model_id": text}))
    model = read_file(path).runs[0].get("model")
    assert isinstance(model, str)
    assert model.isprintable()
    assert "/" not in model or model.count("/") == 1
