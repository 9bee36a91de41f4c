"""Shapes beside the documented one: GuideLLM, aiperf, genai-perf, TensorRT-LLM, nsys and the evaluation harness."""

import json

from nvdash.readers.bundle import read_file
from tests.readers.shapes import asked, values


def guidellm_csv(*runs):
    """A table of GuideLLM, with the columns of the first run as header, as releases of early 2026 wrote it."""
    return "\n".join(",".join(cells) for cells in (*zip(*runs[0], strict=True), *([c[3] for c in r] for r in runs[1:])))


def guidellm_run(incomplete, errored, *, ttft="20", backend="{}", profile="{}", arguments="{}"):
    kinds = [("Successful", "10"), ("Incomplete", incomplete), ("Errored", errored)]
    quoted = ['"' + text.replace('"', '""') + '"' for text in (backend, profile, arguments)]
    cells = [("Run Info", "Run Index", "", "0"), ("Run Info", "Profile", "", quoted[1])]
    cells += [("Run Info", "Backend", "", quoted[0]), ("Benchmark", "Strategy", "", "concurrent")]
    cells += [("Timings", "Duration", "Sec", "30.0")]
    cells += [("Request Counts", kind, "", count) for kind, count in kinds]
    for group, unit, mean in (("Time to First Token", "ms", ttft), ("Inter Token Latency", "ms", "5")):
        cells += [(group, f"{kind} {unit}", "Mean", mean) for kind, count in kinds if count != "0"]
    cells += [("Token Throughput", "Successful Total Tokens/Sec", "Mean", "900")]
    return [*cells, ("Runtime Info", "Arguments", "", quoted[2])]


def test_a_guidellm_table_takes_the_workload_from_its_arguments_and_the_load_from_its_profile(read):
    spec = {"backend": {"model": "m"}, "data": [{"kind": "synthetic_text", "prompt_tokens": 256, "output_tokens": 64}]}
    run = guidellm_run(
        "0",
        "0",
        backend=json.dumps({"kind": "openai_http", "model": "Qwen/Qwen3-8B"}),
        profile=json.dumps({"kind": "concurrent", "streams": [4, 8]}),
        arguments=json.dumps({"spec": spec}),
    )
    found = read(guidellm_csv(run), "benchmarks.csv").runs[0]
    assert values(found, "model", "isl_target", "osl_target", "max_concurrency") == ("Qwen/Qwen3-8B", 256, 64, 4)
    assert values(found, "total_tok_s", "ttft_mean_ms", "tpot_mean_ms") == (900, 20, 5)


def test_a_guidellm_table_whose_rows_may_be_shifted_is_refused(tmp_path):
    path = tmp_path / "benchmarks.csv"
    path.write_text(guidellm_csv(guidellm_run("1", "0"), guidellm_run("0", "1")))  # as wide, but of other kinds
    assert "other kinds of requests" in str(read_file(path).error)
    path.write_text(guidellm_csv(guidellm_run("1", "0"), guidellm_run("1", "0", ttft="30")))
    assert [run.get("ttft_mean_ms") for run in read_file(path).runs] == [20, 30]


def test_a_guidellm_report_that_names_its_version_states_its_total(read):
    metrics = {
        "request_totals": {"successful": 10, "errored": 0, "incomplete": 0},
        "output_tokens_per_second": {"successful": {"mean": 100.0, "count": 10}},
        "prompt_tokens_per_second": {"successful": {"mean": 400.0, "count": 10}},
        "tokens_per_second": {"successful": {"mean": 500.0, "count": 10}},
    }
    run = {"type_": "generative_benchmark", "config": {"strategy": {"type_": "synchronous"}}, "metrics": metrics}
    named = read({"metadata": {"version": 2, "guidellm_version": "0.8.1"}, "benchmarks": [run]}).runs[0]
    assert values(named, "input_tok_s", "output_tok_s", "total_tok_s") == (400, 100, 500)
    unnamed = read({"benchmarks": [run]}).runs[0]
    assert values(unnamed, "output_tok_s", "total_tok_s") == (100, None)


def test_telemetry_of_a_whole_node_does_not_say_which_gpus_served(read):
    gpus = {f"gpu_{n}": {"gpu_name": "NVIDIA A100-SXM4-80GB", "gpu_index": n} for n in range(8)}
    reading = read(
        {
            "input_config": {"endpoint": {"model_names": ["openai/gpt-oss-20b"], "streaming": True}},
            "request_latency": {"unit": "ms", "avg": 5000.0},
            "output_token_throughput_per_user": {"unit": "tokens/sec/user", "avg": 55.0},
            "telemetry_data": {"endpoints": {"localhost:9400": {"gpus": gpus}}},
        }
    )
    assert values(reading.runs[0], "gpu", "gpu_count") == ("NVIDIA A100-SXM4-80GB", 8)
    assert [remark.text for remark in reading.warnings if remark.code == "telemetry"] == [
        "telemetry lists 8 GPUs on 1 endpoint; which of them served is not stated"
    ]


def test_the_cache_dtype_of_a_trtllm_engine_is_the_one_in_effect(read):
    report = {
        "engine": {"model": "Qwen/Qwen3-8B", "dtype": "bfloat16", "kv_cache_dtype": "FP8", "quantization": "NVFP4"},
        "world_info": {"tp_size": 2, "world_size": 2},
        "performance": {"system_output_throughput_tok_s": 1000.0},
    }
    reading = read(report)
    assert values(reading.runs[0], "kv_cache_dtype_resolved", "weight_format") == ("fp8", "nvfp4")
    assert "kv_cache_dtype_resolved" not in asked(reading)


def test_trtllm_bench_prints_what_its_drafts_brought(read):
    text = """
= PYTORCH BACKEND
Model:                  Qwen/Qwen3-8B
KV Cache Dtype:         FP8
= PERFORMANCE OVERVIEW
Total Output Throughput (tokens/sec):             1000.0000
= DECODING STATISTICS (MTP)
[DT] AVERAGE: 300.00
[DAR] MINIMUM: 0.10
[DAR] AVERAGE: 0.72
[AL] AVERAGE: 2.16
"""
    run = read(text, "bench.log").runs[0]
    drafts = ("spec_method", "spec_decode_acceptance_rate_pct", "spec_decode_acceptance_length")
    assert values(run, *drafts) == ("MTP", 72, 2.16)
    assert run.get("kv_cache_dtype_resolved") == "fp8"


NSYS = """Processing [report.sqlite] with [cuda_api_sum.py]...
Time (%),Total Time (ns),Num Calls,Avg (ns),Name
90.0,9000,3,3000.0,cudaLaunchKernel

Processing [report.sqlite] with [nvtx_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Style,Range
100.0,5000,2,2500.0,PushPop,step

Processing [report.sqlite] with [cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Name
75.0,6000,3,2000.0,"void attention<half, 128>(int)"
25.0,2000,1,2000.0,gemm

Processing [report.sqlite] with [cuda_gpu_kern_gb_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,Name
25.0,2000,1,2000.0,1 1 1,gemm
"""


def test_kernels_are_found_between_the_other_tables_of_nsys_and_counted_once(read):
    rows = read(NSYS, "stats.csv").kernels
    assert [(row.name, row.calls, row.time_us, row.share_pct) for row in rows] == [
        ("void attention<half, 128>(int)", 3, 6.0, 75.0),
        ("gemm", 1, 2.0, 25.0),
    ]


def test_a_table_of_nsys_without_kernels_is_refused(tmp_path):
    path = tmp_path / "nvtx.csv"
    path.write_text("Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n100.0,5000,2,2500.0,PushPop,step\n")
    assert "no row of a kernel" in str(read_file(path).error)


def test_the_harness_of_2023_states_one_number_of_examples_for_all_tasks(read):
    scores = {"arc_challenge": {"acc": 0.5, "acc_stderr": 0.01}, "hellaswag": {"acc": 0.6, "acc_stderr": 0.005}}
    config = {"model": "hf-causal", "model_args": "pretrained=EleutherAI/pythia-12b,dtype=float16", "num_fewshot": 25}
    reading = read({"results": scores, "versions": {"arc_challenge": 0, "hellaswag": 0}, "config": config})
    assert [(row.task, row.value, row.stderr, row.n_shot, row.filter) for row in reading.quality] == [
        ("arc_challenge", 0.5, 0.01, 25, None),
        ("hellaswag", 0.6, 0.005, 25, None),
    ]
    assert reading.server["model"] == "EleutherAI/pythia-12b"


def genai_perf(endpoint=None, inputs=None, **perf_analyzer):
    """A report of the releases that keep their settings in sections, as `genai_perf.config.input` writes them."""
    return {
        "request_latency": {"unit": "ms", "avg": 2100.0},
        "request_count": {"unit": "count", "avg": 200.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 720.0},
        "output_token_throughput_per_user": {"unit": "tokens/sec/user", "avg": 80.0},
        "input_config": {
            "model_names": ["acme/M-8B"],
            "endpoint": {
                "backend": "tensorrtllm",
                "type": "chat",
                "streaming": True,
                "service_kind": "openai",
                "output_format": "openai_chat_completions",
                **(endpoint or {}),
            },
            "perf_analyzer": {
                "stimulus": {"concurrency": 10},
                "measurement": {"mode": "request_count", "num": 200},
                **perf_analyzer,
            },
            "input": {
                "file": "",
                "output_tokens": {"mean": 160, "stddev": 0},
                "synthetic_tokens": {"mean": 1000, "stddev": 0},
                "prompt_source": "synthetic",
                **(inputs or {}),
            },
            "tokenizer": {"name": "acme/tok", "revision": "main"},
        },
    }


def test_genai_perf_settings_in_sections_are_read(read):
    reading = read(genai_perf())
    assert reading.format == "genai-perf"
    assert values(reading.runs[0], "isl_target", "osl_target", "num_prompts", "max_concurrency", "dataset") == (
        1000,
        160,
        200,
        10,
        "synthetic",
    )
    assert reading.runs[0].get("framework") is None
    assert "framework" in asked(reading)


def test_genai_perf_on_triton_names_its_backend_and_an_interval_is_no_count(read):
    endpoint = {"service_kind": "triton", "type": "kserve", "backend": "vllm", "output_format": "vllm"}
    measurement = {"mode": "interval", "num": 10000}
    run = read(genai_perf(endpoint, stimulus={"request_rate": 8.0}, measurement=measurement)).runs[0]
    assert values(run, "framework", "request_rate_rps", "num_prompts", "max_concurrency") == ("vllm", 8.0, None, None)


def test_genai_perf_default_length_is_no_target_of_prompts_from_a_file(read):
    reading = read(genai_perf(inputs={"file": "prompts.jsonl", "prompt_source": "file", "output_tokens": {"mean": ""}}))
    assert values(reading.runs[0], "dataset", "isl_target", "osl_target") == ("prompts.jsonl", None, None)
    older = genai_perf()
    older["input_config"] = {
        "model": ["acme/M-8B"],
        "service_kind": "tensorrtllm_engine",
        "synthetic_input_tokens_mean": 550,
        "output_tokens_mean": -1,
        "prompt_source": "file",
        "streaming": True,
    }
    run = read(older).runs[0]
    assert values(run, "framework", "dataset", "isl_target", "osl_target") == ("tensorrt-llm", "file", None, None)


def test_first_aiperf_releases_are_known_without_a_version(read):
    reading = read(
        {
            "request_latency": {"unit": "ms", "avg": 2100.0, "p50": 2000.0},
            "request_count": {"unit": "requests", "avg": 64.0},
            "input_config": {
                "endpoint": {"model_names": ["acme/M-8B"], "type": "chat"},
                "loadgen": {"request_count": 64},
            },
            "was_cancelled": False,
        }
    )
    assert reading.format == "aiperf"
    assert values(reading.runs[0], "model", "num_prompts", "max_concurrency") == ("acme/M-8B", 64, None)


def test_a_run_over_several_models_is_filed_under_none_of_them(read):
    report = genai_perf()
    report["input_config"]["model_names"] = ["acme/M-8B", "acme/M-70B"]
    reading = read(report)
    assert reading.runs[0].get("model") is None
    assert "model" in asked(reading)


def test_first_genai_perf_releases_wrote_the_gaps_as_inter_token_latency(read):
    nanoseconds = {"unit": "ns", "avg": "4000000.0", "p50": "3900000.0"}
    reading = read(
        {
            "request_latency": {"unit": "ns", "avg": "80000000.0"},
            "time_to_first_token": {"unit": "ns", "avg": "20000000.0"},
            "inter_token_latency": nanoseconds,
            "num_output_token": {"unit": "tokens", "avg": "17.5"},
            "num_input_token": {"unit": "tokens", "avg": "550.0"},
            "input_config": {"model": "m", "service_kind": "triton", "streaming": True, "num_prompts": 100},
        }
    )
    run = reading.runs[0]
    assert values(run, "itl_mean_ms", "itl_p50_ms", "tpot_mean_ms") == (4.0, 3.9, None)
    assert values(run, "isl_mean", "osl_mean", "num_prompts") == (550, 17.5, None)
    times = "Time To First Token (ms),20.0\nInter Token Latency (ms),4.0\nRequest Latency (ms),80.0\n"
    run = read(f"Metric,avg\n{times}Num Output Token,17.5\n", "profile_export_genai_perf.csv").runs[0]
    assert values(run, "itl_mean_ms", "tpot_mean_ms", "osl_mean") == (4.0, None, 17.5)
