"""Scrapes of a server: labels are texts, "None" is unknown, counters run since the start."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.readers import metrics
from nvdash.readers.bundle import read_file

FILES = Path(__file__).parent / "files"


def test_a_real_scrape_of_vllm_for_cpu_gives_its_labels_and_counters():
    server = read_file(FILES / "metrics_after_bench.txt").server
    expected = {
        "framework": "vllm",
        "model": "tiny-llama-dummy",
        "kv_cache_dtype_requested": "auto",
        "enable_prefix_caching": True,
        "block_size": 128,
        "num_blocks": 4096,
        "kv_tokens": 524_288,
        "max_concurrency": 512.0,
        "gpu_memory_utilization": 0.92,
        "pool_bytes": 1_073_741_824,
        "preemptions": 0,
        "prompt_tokens_total": 3097,
        "generation_tokens_total": 776,
        "prefix_hit_rate": 0.0,
    }
    assert {name: server[name] for name in expected} == expected
    assert server["observed"] == {
        "kv_bytes_per_token": 2048,  # 4 layers x 2 heads x 64 values x 2 (key, value) x 2 bytes
        "pool_bytes": 1_073_741_824,
        "pool_source": "kv_cache_memory_bytes",
        "kv_tokens": 524_288,
        "uniform": True,
    }


OLD = [
    ('vllm:gpu_cache_usage_perc{model_name="m"} 0.25', {"kv_cache_usage": 0.25}),
    (
        'vllm:gpu_prefix_cache_queries_total{x="1"} 8\nvllm:gpu_prefix_cache_hits_total{x="1"} 2',
        {"prefix_hit_rate": 0.25},
    ),
    ('vllm:num_preemptions_total{engine="0"} 2\nvllm:num_preemptions_total{engine="1"} 3', {"preemptions": 5}),
    ('sglang:max_total_num_tokens{model_name="m"} 2301720', {"kv_tokens": 2_301_720, "framework": "sglang"}),
    (
        'vllm:cache_config_info{block_size="16",cache_dtype="fp8",num_gpu_blocks="None"} 1.0',
        {"num_blocks": None, "kv_cache_dtype_requested": "fp8"},
    ),
    ("vllm:num_requests_running 3 1700000000", {"running": 3}),
    ("vllm:num_preemptions_total NaN", {"preemptions": None}),
]


@pytest.mark.parametrize(("text", "expected"), OLD)
def test_series_of_other_releases_and_engines(text, expected):
    found = metrics.read(text.splitlines())
    assert {name: found.get(name) for name in expected} == expected


@given(before=st.integers(0, 10**12), passed=st.integers(0, 10**9), hits=st.integers(0, 10**9))
def test_what_passed_between_two_scrapes_is_the_difference(before, passed, hits):
    hits = min(hits, passed)
    first = {"process_started": 1.0, "prefix_cache_queries": before, "prefix_cache_hits": before}
    last = {"process_started": 1.0, "prefix_cache_queries": before + passed, "prefix_cache_hits": before + hits}
    found = metrics.between(first, last)
    assert found is not None
    assert (found["prefix_cache_queries"], found["prefix_cache_hits"]) == (passed, hits)
    assert found.get("prefix_hit_rate") == (hits / passed if passed else None)


def test_counters_that_went_back_belong_to_two_servers():
    assert metrics.between({"preemptions": 5}, {"preemptions": 3}) is None


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    assert isinstance(metrics.read(text.splitlines()), dict)


SGLANG = """
sglang:max_total_num_tokens{model_name="m",tp_rank="0"} 6.814016e+06
sglang:cache_hit_rate{model_name="m",tp_rank="0"} 0.0
sglang:prompt_tokens_total{model_name="m"} 1000.0
sglang:cached_tokens_total{cache_source="device",model_name="m"} 900.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 50.0
"""


def test_the_hit_rate_of_sglang_is_counted_and_not_that_of_its_last_batch():
    facts = metrics.read(SGLANG.splitlines())
    assert (facts["prefix_hit_rate"], facts["kv_tokens"]) == (0.95, 6_814_016)
    assert isinstance(facts["kv_tokens"], int)


def test_the_hit_rate_of_sglang_over_a_run_is_that_between_two_scrapes():
    after = SGLANG.replace(" 1000.0", " 3000.0").replace(" 900.0", " 1900.0")
    passed = metrics.between(metrics.read(SGLANG.splitlines()), metrics.read(after.splitlines()))
    assert passed is not None
    assert passed["prefix_hit_rate"] == 0.5


def test_a_text_that_only_mentions_a_series_is_no_scrape(tmp_path):
    path = tmp_path / "notes.md"
    path.write_text("# notes\nvllm:num_requests_running was taken from Prometheus\n")
    assert "found none of them" in str(read_file(path).error)


def test_a_series_that_is_written_under_its_old_and_its_new_name_counts_once():
    text = "vllm:gpu_prefix_cache_queries_total 8\nvllm:prefix_cache_queries_total 8\nvllm:prefix_cache_hits_total 2"
    facts = metrics.read(text.splitlines())
    assert (facts["prefix_cache_queries"], facts["prefix_hit_rate"]) == (8, 0.25)
