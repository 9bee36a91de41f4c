"""Shapes that real files take beside the documented one: small files of our own, each with one such turn."""

import json

import pytest

from nvdash.readers.bundle import read_file


@pytest.fixture
def read(tmp_path):
    """Read a file with this content: a text as it stands, anything else as JSON."""

    def read_content(content, name="result.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        reading = read_file(path)
        assert reading.error is None, reading.error
        return reading

    return read_content


def values(run, *names):
    return tuple(run.get(name) for name in names)


def asked(reading):
    return {gap.field for gap in reading.missing}


SINGLE_NODE = {
    "hardware": "b200",
    "framework": "trt",
    "model": "dsr1",
    "precision": "fp8",
    "disagg": False,
    "is_multinode": False,
    "conc": 8,
    "metrics": {"tput_per_gpu": 100.0, "output_tput_per_gpu": 50.0, "median_tpot": 0.01},
}
"""A row of the InferenceX API; its counts of GPUs are added by a test."""


def test_an_inferencex_row_of_one_node_is_as_wide_as_its_parallelism(read):
    sides = {"prefill_tp": 8, "decode_tp": 8, "prefill_ep": 8, "decode_ep": 8, "decode_dp_attention": True}
    counts = {"num_prefill_gpu": 64, "num_decode_gpu": 64}  # tensor times expert parallelism: the same eight GPUs
    run = read([{**SINGLE_NODE, **sides, **counts}]).runs[0]
    assert values(run, "gpu_count", "total_tok_s", "output_tok_s") == (8, 800, 400)
    assert values(run, "tp", "ep", "dp_attention", "num_prefill_gpus") == (8, 8, True, None)


def test_an_inferencex_row_counts_pipeline_and_prefill_context_ranks(read):
    flat = {"hw": "b300", "tp": 4, "pp": 2, "pcp_size": 2, "dcp_size": 2, "is_multinode": False, "disagg": False}
    run = read({**flat, "framework": "vllm", "tput_per_gpu": 10.0, "output_tput_per_gpu": 5.0}).runs[0]
    assert values(run, "gpu_count", "pp", "dcp", "total_tok_s", "output_tok_s") == (16, 2, 2, 160, 80)


def test_an_inferencex_row_of_several_nodes_adds_its_two_sides(read):
    nodes = {"is_multinode": True, "disagg": True, "num_prefill_gpu": 4, "num_decode_gpu": 32}
    run = read([{**SINGLE_NODE, **nodes, "prefill_tp": 4, "decode_tp": 8}]).runs[0]
    assert values(run, "gpu_count", "total_tok_s", "output_tok_s", "tp") == (36, 3600, 1600, None)


def test_an_inferencex_row_that_contradicts_itself_gives_no_totals(read):
    apart = {"disagg": True, "num_prefill_gpu": 36, "num_decode_gpu": 36, "prefill_tp": 36, "decode_tp": 36}
    reading = read([{**SINGLE_NODE, **apart}])
    assert values(reading.runs[0], "gpu_count", "total_tok_s", "total_tok_s_per_gpu") == (None, None, 100)
    assert "gpu_count" in asked(reading)


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.25.1", "v0.25.1"),
        ("registry.example:5000/vllm/vllm-openai:v0.25.1@sha256:0123abcd", "v0.25.1"),
        ("vllm/vllm-openai@sha256:0123abcd", None),
        ("vllm/vllm-openai", None),
    ],
)
def test_a_version_is_the_tag_of_an_image_and_never_its_name_or_digest(read, image, version):
    assert read([{**SINGLE_NODE, "image": image}]).runs[0].get("version") == version


LINE = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "max_concurrency": 8,
    "sharegpt_output_len": None,
    "random_input_len": 1024,
    "random_output_len": 256,
    "duration": 10.0,
    "completed": 40,
    "total_input_tokens": 40_000,
    "total_output_tokens": 10_000,
    "total_output_tokens_retokenized": 9_990,
    "output_throughput": 1000.0,
    "mean_ttft_ms": 80.0,
}
"""A line of SGLang's bench_serving."""


def test_a_disaggregated_run_is_not_asked_for_what_it_states_itself(read):
    side = {"model_path": "Qwen/Qwen3-8B", "version": "0.5.6", "tp_size": 2, "kv_cache_dtype": "fp8_e4m3"}
    reading = read({**LINE, "server_info": {"prefill": [side], "decode": [{**side, "tp_size": 4}]}})
    stated = {"model", "version", "dataset", "isl_target", "osl_target", "max_concurrency", "requests_completed", "tp"}
    assert not stated & asked(reading)
    assert {"gpu", "weight_format", "kv_cache_dtype_resolved"} <= asked(reading)


def test_a_disaggregated_run_of_two_versions_has_none_of_its_own(read):
    side = {"model_path": "Qwen/Qwen3-8B", "version": "0.5.5"}
    run = read({**LINE, "server_info": {"prefill": [side], "decode": [{**side, "version": "0.5.6"}]}}).runs[0].as_dict()
    assert (run["model"], run.get("version")) == ("Qwen/Qwen3-8B", None)
    assert (run["prefill"]["version"], run["decode"]["version"]) == ("0.5.5", "0.5.6")


@pytest.mark.parametrize(
    ("stated", "targets"),
    [
        ({"dataset_name": "random"}, (1024, 256)),
        ({"dataset_name": "sharegpt"}, (None, None)),
        ({"dataset_name": "sharegpt", "sharegpt_output_len": 512}, (None, 512)),
        ({"dataset_name": "generated-shared-prefix"}, (None, None)),
        ({"dataset_name": None}, (None, None)),
    ],
)
def test_random_lengths_are_targets_of_random_datasets_only(read, stated, targets):
    assert values(read({**LINE, **stated}).runs[0], "isl_target", "osl_target") == targets


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


TABLE = """
| model                          |       size |     params | backend    | n_ubatch |      test |             t/s |
| ------------------------------ | ---------: | ---------: | ---------- | -------: | --------: | --------------: |
| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | {backend:10} |     1024 |     pp512 | {speed:.2f} ± 1.00 |
"""
CUDA = """ggml_cuda_init: found 2 CUDA devices:
  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes
  Device 1: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes
"""
ROCM = "  Device 0: AMD Radeon 8060S Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32\n"
VULKAN = "ggml_vulkan: 0 = AMD Radeon 8060S Graphics (RADV GFX1151) (radv) | uma: 1 | fp16: 1\n"
METAL = "ggml_metal_init: GPU name:   Apple M2 Max\n"


@pytest.mark.parametrize(
    ("devices", "gpu", "count"),
    [
        (CUDA, "NVIDIA GeForce RTX 3090", 2),
        (ROCM, "AMD Radeon 8060S Graphics", 1),
        (VULKAN, "AMD Radeon 8060S Graphics (RADV GFX1151)", 1),
        (METAL, "Apple M2 Max", 1),
        ("", None, None),
    ],
)
def test_llama_bench_names_its_devices_above_the_table(read, devices, gpu, count):
    reading = read(devices + TABLE.format(backend="any", speed=100), "bench.log")
    assert values(reading.runs[0], "gpu", "gpu_count", "prefill_tok_s", "n_ubatch") == (gpu, count, 100, 1024)
    assert ("gpu" in asked(reading)) == (gpu is None)


def test_devices_and_build_of_one_llama_bench_table_say_nothing_of_the_next(read):
    first = CUDA + TABLE.format(backend="CUDA", speed=100) + "\nbuild: 0a1b2c3d (6500)\n"
    second = "## another machine\n" + TABLE.format(backend="ROCm", speed=200)
    third = ROCM + TABLE.format(backend="ROCm", speed=300) + "\nbuild: 1a1b2c3d (6600)\n"
    runs = read(first + second + third, "README.md").runs
    assert [values(run, "prefill_tok_s", "gpu", "version") for run in runs] == [
        (100, "NVIDIA GeForce RTX 3090", "6500"),
        (200, None, None),
        (300, "AMD Radeon 8060S Graphics", "6600"),
    ]


TEST = {
    "build_commit": "0a1b2c3d",
    "build_number": 6500,
    "gpu_info": "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 3090",
    "backends": "CUDA",
    "model_filename": "models/llama-7b.Q4_0.gguf",
    "model_type": "llama 7B Q4_0",
    "split_mode": "layer",
    "type_k": "f16",
    "type_v": "f16",
    "n_prompt": 0,
    "n_gen": 128,
    "n_depth": 0,
    "avg_ts": 100.0,
}


@pytest.mark.parametrize(
    ("stated", "gpu", "count"),
    [
        ({}, "NVIDIA GeForce RTX 3090", 2),
        ({"split_mode": "none"}, "NVIDIA GeForce RTX 3090", 1),
        ({"backends": "CUDA,RPC"}, "NVIDIA GeForce RTX 3090", None),
        ({"gpu_info": "NVIDIA A100, NVIDIA H100"}, "NVIDIA A100, NVIDIA H100", None),
        ({"gpu_info": ""}, None, None),
    ],
)
def test_llama_bench_lists_every_gpu_it_could_use(read, stated, gpu, count):
    assert values(read([{**TEST, **stated}]).runs[0], "gpu", "gpu_count") == (gpu, count)


def test_a_batch_size_of_llama_bench_answers_the_question_for_batched_tokens(read):
    reading = read([{**TEST, "n_batch": 2048, "n_ubatch": 512}])
    assert values(reading.runs[0], "n_batch", "n_ubatch") == (2048, 512)
    assert "max_num_batched_tokens" not in asked(reading)


def test_llama_bench_lines_are_found_between_what_llama_cpp_says(read):
    text = f"ggml_cuda_init: found 2 CUDA devices:\n{json.dumps(TEST)}\nload_backend: done\n{json.dumps(TEST)}\n"
    assert [run.get("decode_tok_s") for run in read(text, "bench.jsonl").runs] == [100, 100]


def test_a_table_that_only_borrows_names_of_llama_bench_is_left_to_the_mapping(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text("model,start,n_gen,avg_ts,build_commit\nllama,0,128,20.5,abc\nllama,8192,128,18.5,abc\n")
    assert "--map" in str(read_file(path).error)


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


def test_one_batch_without_drafts_and_without_a_hit_rate_is_read(read):
    line = {"run_name": "default", "batch_size": 32, "input_len": 8192, "output_len": 1000, "latency": 110.0}
    rates = {"input_throughput": 26_214.4, "output_throughput": 320.0, "overall_throughput": 2674.04}
    none = {"last_ttft": 10.0, "last_gen_throughput": 318.0, "acc_length": -1.0, "cache_hit_rate": None}
    reading = read({**line, **rates, **none}, "result.jsonl")
    run = reading.runs[0]
    assert values(run, "spec_decode_acceptance_length", "prefix_hit_rate", "ttft_ms") == (None, None, 10_000)
    assert values(run, "prefill_tok_s", "decode_tok_s") == (26_214.4, 320)  # 32 x 8192 / 10 s, 32 x 1000 / 100 s
    assert "phases" in [remark.code for remark in reading.warnings]


def test_one_batch_with_drafts_states_their_acceptance(read):
    line = {"batch_size": 1, "input_len": 8, "output_len": 8, "latency": 1.0, "overall_throughput": 16.0}
    drafts = {"acc_length": 2.4, "spec_accept_length": 2.5, "spec_accept_rate": 0.5}
    run = read({**line, **drafts}, "result.jsonl").runs[0]
    assert values(run, "spec_decode_acceptance_length", "spec_decode_acceptance_rate_pct") == (2.5, 50)


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({"output_throughput": 410.0, "input_throughput": 6553.6}, (410.0, 6553.6, None)),  # 8 x 128 / 2.5 s = 409.6
        ({"output_throughput": 2_103_963.0, "input_throughput": 6560.0}, (None, None, None)),
        ({"output_throughput": 609.0, "input_throughput": 20_000.0, "last_ttft": 0.8192}, (None, None, 609.0)),
    ],
)
def test_a_rate_of_one_batch_is_that_of_the_whole_batch_or_of_a_timed_phase(read, more, kept):
    line = {"batch_size": 8, "input_len": 2048, "output_len": 128, "latency": 2.5, "overall_throughput": 6963.2}
    reading = read({**line, "acc_length": 1.0, **more}, "result.jsonl")
    assert values(reading.runs[0], "output_tok_s", "input_tok_s", "decode_tok_s") == kept
    assert ("phases" in [remark.code for remark in reading.warnings]) is (kept[0] is None)


def test_one_batch_of_a_single_output_token_has_no_decode_step(read):
    line = {"run_name": "default", "batch_size": 8, "input_len": 1024, "output_len": 1}
    times = {"prefill_latency": 0.5, "prefill_throughput": 16_384.0, "total_latency": 0.5, "overall_throughput": 16_400}
    reading = read({**line, **times}, "result.jsonl")
    assert reading.format == "sglang-one-batch"
    assert values(reading.runs[0], "prefill_ms", "tpot_p50_ms", "latency_ms") == (500, None, 500)


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


BENCHY = """
| model | test | t/s (total) | t/s (req) | peak t/s | peak t/s (req) | ttfr (ms) | est_ppt (ms) | e2e_ttft (ms) |
|:------|-----:|------------:|----------:|---------:|---------------:|----------:|-------------:|--------------:|
| qwen | pp2048 (c1) | 2000.00 ± 5.00 | 2000.00 ± 5.00 | | | 1000.00 ± 9.00 | 990.00 ± 9.00 | 1010.00 ± 9.00 |
| qwen | tg128 (c1) | 50.00 ± 0.50 | 50.00 ± 0.50 | 55.00 ± 1.00 | 55.00 ± 1.00 | | | |
| qwen | ctx_pp @ d4096 (c4) | 3000.00 ± 5.00 | 800.00 ± 5.00 | | | 5000.00 ± 9.00 | 4990.00 ± 9.00 | 5010.00 ± 9.00 |
| qwen | ctx_tg @ d4096 (c4) | 120.00 ± 0.50 | 30.00 ± 0.50 | 140.00 ± 1.00 | 35.00 ± 1.00 | | | |
| qwen | pp2048 @ d4096 (c4) | 4000.00 ± 5.00 | 1000.00 ± 5.00 | | | 2000.00 ± 9.00 | 1990.00 ± 9.00 | 2010.00 ± 9.00 |
| qwen | tg128 @ d4096 (c4) | 100.00 ± 0.25 | 25.00 ± 0.50 | 110.00 ± 1.00 | 28.00 ± 1.00 | | | |

llama-benchy (0.4.0)
date: 2026-08-16 12:02:31 | latency mode: generation
"""


def test_a_table_of_llama_benchy_gives_one_run_for_prompt_and_answer(read):
    reading = read("Running test: pp=2048, tg=128\n" + BENCHY, "benchy.log")
    assert reading.format == "llama-benchy-markdown"
    names = ("max_concurrency", "context", "prompt", "prefill_tok_s", "decode_tok_s", "ttft_ms", "peak_output_tok_s")
    assert [values(run, *names) for run in reading.runs] == [
        (1, 0, 2048, 2000, 50, 1010, 55),
        (4, 4096, None, 3000, 120, 5010, 140),
        (4, 4096, 2048, 4000, 100, 2010, 110),
    ]
    assert [run.get("phase") for run in reading.runs] == [None, "prefill", None]
    assert values(reading.runs[2], "stddev", "latency_mode", "response") == (0.25, "generation", 128)


def test_a_table_of_llama_benchy_without_concurrency_ran_one_at_a_time(read):
    text = """
| model | test | t/s | peak t/s | ttfr (ms) | est_ppt (ms) | e2e_ttft (ms) |
|:------|-----:|----:|---------:|----------:|-------------:|--------------:|
| qwen | pp2048 @ d1000 | 6000.00 ± 7.00 | | 450.00 ± 4.00 | 340.00 ± 4.00 | 455.00 ± 4.00 |
| qwen | tg480 @ d1000 | 60.00 ± 1.25 | 76.00 ± 4.50 | | | |
"""
    runs = read(text, "benchy.md").runs
    assert [values(run, "max_concurrency", "context", "decode_tok_s", "stddev") for run in runs] == [
        (1, 1000, 60, 1.25)
    ]


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


def unstreamed(tokens):
    return {
        "model_id": "acme/M-8B",
        "duration": 10.0,
        "completed": 10,
        "total_input_tokens": 1000,
        "total_output_tokens": tokens,
        "request_throughput": 1.0,
        "output_throughput": tokens / 10,
        "total_token_throughput": 100 + tokens / 10,
        "mean_ttft_ms": 2000.0,
        "median_ttft_ms": 1900.0,
        "mean_tpot_ms": 0.2,
        "mean_itl_ms": 0.0,
        "mean_e2el_ms": 2000.0,
    }


def test_answers_without_a_gap_were_not_streamed(read):
    reading = read(unstreamed(tokens=500))
    assert values(reading.runs[0], "ttft_mean_ms", "ttft_p50_ms", "tpot_mean_ms") == (None, None, None)
    assert values(reading.runs[0], "e2e_mean_ms", "output_tok_s") == (2000.0, 50.0)
    assert "not_streaming" in {remark.code for remark in reading.warnings}


def test_answers_of_one_token_have_a_first_token_and_no_gap(read):
    reading = read(unstreamed(tokens=10))
    assert values(reading.runs[0], "ttft_mean_ms", "ttft_p50_ms", "itl_mean_ms") == (2000.0, 1900.0, None)
    assert "not_streaming" not in {remark.code for remark in reading.warnings}
