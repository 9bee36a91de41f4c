"""Every format without a public file, from a file with our own numbers in the documented shape.

The expected values are the file's own, converted by hand where the format keeps another unit.
"""

from pathlib import Path

import pytest

from nvdash.readers.bundle import read_file

FILES = Path(__file__).parent / "files"

RUNS = [
    (
        "bench_latency.json",
        "vllm-bench-latency",
        0,
        {
            "latency_ms": 128.92259000000195,
            "e2e_p50_ms": 124.13293800000247,
            "e2e_p99_ms": 156.19699584004593,
            "ttft_mean_ms": None,
        },
    ),
    (
        "bench_throughput.json",
        "vllm-bench-throughput",
        0,
        {
            "total_tok_s": 2635.883010271066,
            "output_tok_s": None,
            "requests_completed": 16,
            "duration_s": 0.48826142699999764,
        },
    ),
    (
        "bench_serve_bf16.json",
        "vllm-bench-serve",
        0,
        {
            "request_rate_rps": "inf",
            "max_concurrency": 4,
            "isl_mean": 128.625,
            "kv_cache_dtype_requested": "auto",
            "gpu": "cpu",
            "version": None,
            "tpot_p50_ms": 3.538069548386052,
        },
    ),
    (
        "own-pre-0.9-goodput-colon.json",
        "vllm-bench-serve",
        0,
        {"request_goodput_rps": 8.1, "requests_failed": None, "max_concurrency": None, "osl_mean": 128},
    ),
    (
        "own-pooling.json",
        "vllm-bench-serve",
        0,
        {"kind": "pooling", "ttft_mean_ms": None, "output_tok_s": None, "e2e_mean_ms": 390, "isl_mean": 512},
    ),
    (
        "own-vllm-sweep-summary.csv",
        "vllm-bench-sweep-csv",
        1,
        {
            "kv_cache_dtype_requested": "nvfp4",
            "max_num_seqs": 32,
            "output_tok_s": 1024,
            "request_rate_rps": "inf",
            "run_number": 0,
        },
    ),
    (
        "own-vllm-console.txt",
        "console",
        0,
        {"requests_completed": 64, "ttft_p50_ms": 85, "tpot_mean_ms": 10.5, "model": None},
    ),
    (
        "own-vllm-dashboard.pytorch.json",
        "vllm-dashboard",
        0,
        {"latency_ms": 1500, "kv_cache_dtype_requested": "fp8", "tp": 2, "gpu_memory_utilization": 0.9},
    ),
    (
        "own-vllm-dashboard.pytorch.json",
        "vllm-dashboard",
        1,
        {"ttft_mean_ms": 25, "tpot_p50_ms": 7.5, "output_tok_s": 1234.5, "request_rate_rps": "inf", "framework": None},
    ),
    (
        "own-sglang-disaggregated.jsonl",
        "sglang-bench-serving",
        0,
        {"ttft_mean_ms": 200, "itl_p95_ms": 30, "e2e_mean_ms": 5000, "model": "Qwen/Qwen3-32B", "tp": None},
    ),
    (
        "own-sglang-one-batch.jsonl",
        "sglang-one-batch",
        0,
        {"prefill_ms": 250, "tpot_p50_ms": 12.5, "prefill_tok_s": 65536, "decode_tok_s": 1280, "latency_ms": 1050},
    ),
    (
        "own-sglang-one-batch-server.jsonl",
        "sglang-one-batch-server",
        0,
        {"ttft_ms": 819.2, "latency_ms": 2500, "decode_tok_s": 610, "prefix_hit_rate": 0.5, "output_tok_s": None},
    ),
    (
        "own-trtllm-report.json",
        "trtllm-bench",
        0,
        {
            "duration_s": 20,
            "ttft_p99_ms": 99,
            "tpot_mean_ms": 6.6,
            "gpu": "NVIDIA B200",
            "gpu_count": 2,
            "kv_memory_percent": 90,
            "weight_format": "nvfp4",
            "kv_cache_dtype_requested": None,
            "kv_cache_dtype_resolved": "bfloat16",
            "request_rate_rps": None,
            "spec_decode_acceptance_rate_pct": 72,
        },
    ),
    (
        "own-trtllm-stdout-pytorch.txt",
        "trtllm-bench-stdout",
        0,
        {
            "output_tok_s": 1024,
            "total_tok_s": 9216,
            "duration_s": 50,
            "ttft_p50_ms": 400,
            "tpot_p99_ms": 40,
            "gpu": "NVIDIA H200",
            "weight_format": "bf16",
            "kv_cache_dtype_resolved": "bfloat16",
            "mean_concurrency": 31.5,
        },
    ),
    (
        "own-genai-perf-old-ns.json",
        "genai-perf",
        0,
        {
            "ttft_mean_ms": 80,
            "ttft_p99_ms": 120,
            "tpot_mean_ms": 11,
            "e2e_p50_ms": 1400,
            "isl_mean": 512,
            "max_concurrency": 3,
        },
    ),
    (
        "own-genai-perf.csv",
        "aiperf-csv",
        0,
        {"ttft_p99_ms": 1120.5, "tpot_mean_ms": 11, "itl_mean_ms": None, "e2e_mean_ms": 1477, "requests_completed": 40},
    ),
    (
        "own-aiperf-1.4.json",
        "aiperf",
        0,
        {
            "tpot_mean_ms": 6.6,
            "itl_mean_ms": 13.1,
            "requests_failed": 4,
            "max_concurrency": 8,
            "gpu_count": 2,
            "duration_s": 100,
        },
    ),
    (
        "own-guidellm-v2.json",
        "guidellm",
        1,
        {
            "tpot_mean_ms": 1.1508,
            "ttft_mean_ms": 11.481,
            "e2e_mean_ms": 19.5,
            "max_concurrency": 8,
            "isl_target": 256,
            "osl_target": 8,
            "requests_incomplete": 1,
        },
    ),
    (
        "own-guidellm-v2.yaml",
        "guidellm-yaml",
        0,
        {"tpot_mean_ms": 1.1508, "e2e_mean_ms": 19.5, "model": "Qwen/Qwen3-8B"},
    ),
    (
        "own-guidellm.csv",
        "guidellm-csv",
        0,
        {
            "tpot_mean_ms": 1.1508,
            "e2e_p50_ms": 19,
            "e2e_p99_ms": 35,
            "ttft_p90_ms": 14,
            "ttft_p50_ms": None,
            "request_rate_rps": "inf",
        },
    ),
    (
        "own-llama-bench.csv",
        "llama-bench-csv",
        0,
        {
            "phase": "prefill",
            "prefill_tok_s": 10240,
            "kv_dtype_k": "q8_0",
            "kv_dtype_v": "q4_0",
            "kv_cache_dtype_requested": None,
        },
    ),
    ("own-llama-bench.csv", "llama-bench-csv", 1, {"phase": "decode", "decode_tok_s": 182.5, "n_depth": 4096}),
    (
        "own-llama-bench.md",
        "llama-bench-markdown",
        2,
        {
            "decode_tok_s": 120.75,
            "stddev": 0.5,
            "n_gen": 128,
            "n_depth": 16384,
            "gpu": "NVIDIA GeForce RTX 4090",
            "version": "6500",
        },
    ),
    (
        "own-llama-bench.md",
        "llama-bench-markdown",
        3,
        {"phase": "mixed", "mixed_tok_s": 700, "n_prompt": 512, "n_gen": 128},
    ),
    (
        "own-inferencex-agg.json",
        "inferencex",
        0,
        {
            "ttft_p99_ms": 900,
            "tpot_mean_ms": 12.5,
            "total_tok_s": 20000,
            "output_tok_s": 10000,
            "framework": "tensorrt-llm",
            "interactivity_p50_tok_s": 83.3,
            "spec_method": "mtp",
            "isl": 1024,
        },
    ),
    (
        "own-inferencex-api-disaggregated.json",
        "inferencex",
        0,
        {"gpu_count": 12, "total_tok_s": 12000, "output_tok_s": 1600, "ttft_p50_ms": 1500, "spec_method": None},
    ),
]


@pytest.mark.parametrize(("name", "format_name", "number", "expected"), RUNS)
def test_a_file_with_our_own_numbers_gives(name, format_name, number, expected):
    reading = read_file(FILES / name)
    assert reading.error is None
    assert reading.format == format_name
    found = {field: reading.runs[number].get(field) for field in expected}
    assert found == pytest.approx(expected)


QUALITY = [
    (
        "own-ruler-summary.csv",
        [
            ("niah_single_1", "score", None, 100.0, 500),
            ("vt", "score", None, 87.5, 500),
            ("qa_1", "score", None, 61.2, 500),
        ],
    ),
    (
        "own-longbench-result.json",
        [
            ("hotpotqa", "score", None, 55.5, None),
            ("gov_report", "score", None, 31.2, None),
            ("lcc", "score", None, 60.0, None),
        ],
    ),
    (
        "own-longbench-e-result.json",
        [
            ("hotpotqa", "score 0-4k", None, 60.1, None),
            ("hotpotqa", "score 4-8k", None, 55.0, None),
            ("hotpotqa", "score 8k+", None, 50.2, None),
        ],
    ),
    (
        "own-longbench-v2.jsonl",
        [
            ("longbench_v2", "acc", "overall", 0.75, 4),
            ("longbench_v2", "acc", "easy", 1.0, 2),
            ("longbench_v2", "acc", "hard", 0.5, 2),
            ("longbench_v2", "acc", "short", 0.5, 2),
            ("longbench_v2", "acc", "medium", 1.0, 1),
            ("longbench_v2", "acc", "long", 1.0, 1),
        ],
    ),
]


@pytest.mark.parametrize(("name", "expected"), QUALITY)
def test_long_context_scores_become_quality_rows(name, expected):
    rows = read_file(FILES / name).quality
    assert [(row.task, row.metric, row.filter, row.value, row.n_effective) for row in rows] == expected


def test_a_disaggregated_run_keeps_its_two_sides_apart():
    run = read_file(FILES / "own-sglang-disaggregated.jsonl").runs[0].as_dict()
    assert (run["prefill"]["tp"], run["decode"]["tp"]) == (2, 4)
    assert (run["prefill"]["attention_backend"], run["decode"]["attention_backend"]) == ("fa3", "flashinfer")
    assert (run["prefill"]["kv_tokens"], run["decode"]["kv_tokens"]) == (500_000, 1_500_000)


def test_kernels_of_an_older_nsys_come_longest_first_in_microseconds():
    rows = read_file(FILES / "own-nsys-2021-names.csv").kernels
    assert [(row.name, row.calls, row.time_us, row.share_pct) for row in rows] == [
        ("void flash::kernel<float, 4>(int, float)", 60, 6000.0, 60.0),
        ("gemm", 20, 4000.0, 40.0),
    ]


@pytest.mark.parametrize("path", sorted(FILES.glob("own-*")), ids=lambda path: path.name)
def test_what_must_not_be_kept_is_dropped_at_the_door(path):
    text = str({name: value for name, value in read_file(path).as_dict().items() if name != "file"})
    for forbidden in ("secret", "sk-", "10.0.0", "10.1.2.3", "10.9.8.7", "/home/", "/data/", "/tmp/"):
        assert forbidden not in text
