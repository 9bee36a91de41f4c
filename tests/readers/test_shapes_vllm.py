"""Shapes beside the documented one: vLLM: consoles, the benchmark of 2024, dashboard records."""

import json

from nvdash.readers.bundle import read_file
from tests.readers.shapes import asked, values

BLOCK = """
============ Serving Benchmark Result ============
{inside}Successful requests:                     40
Benchmark duration (s):                  10.00
Total generated tokens:                  10000
Output token throughput (tok/s):         1000.00
==================================================
"""


def test_a_console_names_the_framework_of_sglang_and_its_older_total(read):
    inside = "Backend:                sglang\nTotal throughput (tok/s):     5000.00\n"
    reading = read(BLOCK.format(inside=inside), "bench.log")
    assert values(reading.runs[0], "framework", "backend", "total_tok_s") == ("sglang", "sglang", 5000)
    assert "framework" not in asked(reading)


def test_a_console_of_an_older_vllm_states_the_load_before_the_block(read):
    first = "Traffic request rate: 2.0\nBurstiness factor: 1.0 (Poisson process)\nMaximum request concurrency: 32\n"
    second = "Traffic request rate: inf\nMaximum request concurrency: None\n"
    block = BLOCK.format(inside="")
    runs = read(first + block + second + block, "bench.log").runs
    assert values(runs[0], "request_rate_rps", "burstiness", "max_concurrency") == (2, 1, 32)
    assert values(runs[1], "request_rate_rps", "burstiness", "max_concurrency") == ("inf", None, None)


SERVED = {
    "date": "20240907-082717",
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B",
    "tokenizer_id": "meta-llama/Llama-3.1-8B",
    "num_prompts": 10,
    "request_rate": "inf",
    "duration": 10.0,
    "completed": 10,
    "total_input_tokens": 2000,
    "total_output_tokens": 1000,
    "request_throughput": 1.0,
    "output_throughput": 100.0,
    "mean_ttft_ms": 50.0,
    "median_ttft_ms": 45.0,
}
"""What every release of vLLM's serving benchmark writes."""


def test_the_serving_benchmark_of_2024_states_input_instead_of_total(read):
    reading = read({**SERVED, "best_of": 1, "use_beam_search": False, "input_throughput": 200.0})
    assert reading.format == "vllm-bench-serve"
    run = reading.runs[0]
    assert values(run, "input_tok_s", "output_tok_s", "total_tok_s", "ttft_p50_ms") == (200, 100, None, 45)
    assert run.get("started_at") == "2024-09-07T08:27:17"


def test_a_date_that_is_written_as_iso_text_already_stays(read):
    run = read({**SERVED, "total_token_throughput": 300.0, "date": "2026-07-22T13:35:44Z"}).runs[0]
    assert values(run, "started_at", "input_tok_s") == ("2026-07-22T13:35:44Z", 200)


def test_a_table_with_commas_inside_its_cells_is_still_offered_for_mapping(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text('model,depth,samples\nllama,0,"[1.5, 2.5]"\nllama,8192,"[1.0, 2.0, 3.0]"\n')
    assert "--map" in str(read_file(path).error)


def record(name, value, arguments, **more):
    """One record of the PyTorch benchmark dashboard."""
    return {
        "benchmark": {"name": "vLLM benchmark", "extra_info": {"args": arguments}},
        "model": {"name": "Qwen/Qwen3-8B"},
        "metric": {"name": name, "benchmark_values": [value], "extra_info": more.pop("extra", {})},
        **more,
    }


SERVE = {"request_rate": "inf", "max_concurrency": 16, "dataset_name": "sharegpt", "random_input_len": 1024}


def test_a_dashboard_record_names_the_device_and_not_the_platform(read):
    runner = {"name": "cuda", "type": "NVIDIA H100", "gpu_info": "NVIDIA H100 80GB HBM3", "gpu_count": 8}
    run = read([record("mean_ttft_ms", 20.0, SERVE, runners=[runner])]).runs[0]
    assert values(run, "gpu", "gpu_count") == ("NVIDIA H100 80GB HBM3", None)
    bare = read([record("mean_ttft_ms", 20.0, SERVE, runners=[{"name": "linux.aws.h100"}])]).runs[0]
    assert bare.get("gpu") is None


def test_a_dashboard_record_of_serving_brings_the_rest_of_the_result(read):
    rest = {name: value for name, value in SERVED.items() if not name.endswith("_ttft_ms")}
    rest |= {"total_token_throughput": 300.0, "date": "20260722-133544"}
    records = [record("mean_ttft_ms", 20.0, SERVE, extra=rest), record("median_tpot_ms", 8.0, SERVE, extra=rest)]
    runs = read(records).runs
    assert len(runs) == 1
    assert values(runs[0], "ttft_mean_ms", "tpot_p50_ms", "output_tok_s", "total_tok_s") == (20, 8, 100, 300)
    assert values(runs[0], "requests_completed", "isl_mean", "isl_target") == (10, 200, None)


def test_dashboard_records_of_offline_runs_keep_their_kind(read):
    engine = {"tensor_parallel_size": 2, "kv_cache_dtype": "fp8"}
    beside = {"elapsed_time": 50.0, "num_requests": 200, "total_num_tokens": 64_000}
    fast = [
        record(n, v, engine, extra=beside) for n, v in (("requests_per_second", 4.0), ("tokens_per_second", 1280.0))
    ]
    run = read(fast).runs[0]
    assert values(run, "kind", "framework", "request_rate_rps", "duration_s") == ("throughput", "vllm", "inf", 50)
    assert values(run, "request_throughput_rps", "total_tok_s", "requests_completed") == (4, 1280, 200)
    slow = record("latency", 1.5, engine, extra={"avg_latency": 1.5, "percentiles": {"50": 1.4, "99": 1.9}})
    run = read([slow]).runs[0]
    assert values(run, "kind", "latency_ms", "e2e_p50_ms", "e2e_p99_ms") == ("latency", 1500, 1400, 1900)


def test_dashboard_records_of_other_metrics_are_refused(tmp_path):
    path = tmp_path / "startup.pytorch.json"
    path.write_text(json.dumps([record("avg_cold_startup_time", 60.0, {"tensor_parallel_size": 1})]))
    assert "found other metrics only" in str(read_file(path).error)
