"""Shapes beside the documented one: llama-bench and llama-benchy: tables, lines between other output."""

import json

import pytest

from nvdash.readers.bundle import read_file
from tests.readers.shapes import asked, values

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
