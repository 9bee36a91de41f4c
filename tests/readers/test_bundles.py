"""Files of one run put together: who says what, what contradicts, what happened between two scrapes."""

import json
from pathlib import Path

import pytest

from nvdash.readers.bundle import Bundle, combine, read_file

RESULT = {
    "date": "20261101-100000",
    "model_id": "served-alias",
    "tokenizer_id": "nvidia/Qwen3-32B-NVFP4",
    "num_prompts": 64,
    "request_rate": "inf",
    "max_concurrency": 16,
    "duration": 10.0,
    "completed": 64,
    "failed": 0,
    "total_input_tokens": 65536,
    "total_output_tokens": 8192,
    "request_throughput": 6.4,
    "output_throughput": 819.2,
    "total_token_throughput": 7372.8,
    "mean_ttft_ms": 100.0,
}
LOG = """\
(APIServer pid=1) INFO 11-01 [a.py:1] vLLM API server version 0.33.0
(APIServer pid=1) INFO 11-01 [a.py:1] non-default args: {'model': 'nvidia/Qwen3-32B-NVFP4', 'kv_cache_dtype': 'nvfp4', 'max_num_seqs': 64}
(APIServer pid=1) INFO 11-01 [cache.py:1] Using nvfp4 data type to store kv cache.
(EngineCore pid=2) INFO 11-01 [kv_cache_utils.py:1] GPU KV cache size: 152,880 tokens
"""  # noqa: E501
SCRAPE = """\
process_start_time_seconds 1.7e+09
vllm:cache_config_info{{block_size="16",cache_dtype="nvfp4",enable_prefix_caching="True",gpu_memory_utilization="0.9",\
kv_cache_memory_bytes="None",kv_cache_size_tokens="{tokens}",num_gpu_blocks="None"}} 1.0
vllm:num_preemptions_total{{engine="0"}} {preemptions}
vllm:prefix_cache_queries_total{{engine="0"}} {queries}
vllm:prefix_cache_hits_total{{engine="0"}} {hits}
vllm:prompt_tokens_total{{engine="0"}} {queries}
vllm:generation_tokens_total{{engine="0"}} 8192
"""


def scrape(preemptions: int, queries: int, hits: int, tokens: int = 152_880) -> str:
    return SCRAPE.format(preemptions=preemptions, queries=queries, hits=hits, tokens=tokens)


@pytest.fixture
def bundle(tmp_path):
    """A function that writes files of one run and combines them."""

    def build(**files: str) -> Bundle:
        paths = []
        for name, text in files.items():
            path = tmp_path / name
            path.write_text(text)
            paths.append(path)
        return combine([read_file(path) for path in paths])

    return build


def test_a_result_takes_the_server_s_facts_and_names_the_file_that_states_them(bundle):
    found = bundle(result=json.dumps(RESULT), log=LOG)
    run = found.runs[0]
    assert run.get("model") == "nvidia/Qwen3-32B-NVFP4"  # the log's id, not the served alias
    assert (run.get("version"), run.get("kv_cache_dtype_requested"), run.get("max_num_seqs")) == ("0.33.0", "nvfp4", 64)
    assert run.get("kv_tokens") == 152_880
    assert run.get("ttft_mean_ms") == 100.0
    assert found.provenance["kv_tokens"] == "log"


def test_counters_of_two_scrapes_are_differenced_in_whatever_order_they_come(bundle):
    before, after = scrape(3, 1_000, 100), scrape(9, 5_000, 2_100)
    for files in ({"a": before, "b": after}, {"a": after, "b": before}):
        found = bundle(**files)
        assert found.server["preemptions"] == 6
        assert found.server["prefix_hit_rate"] == 0.5  # 2,000 of 4,000 tokens


def test_one_scrape_counts_since_the_start_and_says_nothing_of_the_run(bundle):
    found = bundle(result=json.dumps(RESULT), scrape=scrape(9, 5_000, 2_500))
    assert "one_scrape" in [warning.code for warning in found.warnings]
    assert found.server["preemptions"] == 9
    assert (found.runs[0].get("preemptions"), found.runs[0].get("prefix_hit_rate")) == (None, None)
    assert {"preemptions", "prefix_hit_rate"} <= {gap.field for gap in found.missing}


def test_a_server_that_never_preempted_did_not_preempt_this_run(bundle):
    found = bundle(result=json.dumps(RESULT), scrape=scrape(0, 5_000, 2_500))
    assert found.runs[0].get("preemptions") == 0
    assert found.runs[0].get("prefix_hit_rate") is None


def test_two_scrapes_around_a_run_close_its_counters(bundle):
    found = bundle(result=json.dumps(RESULT), before=scrape(3, 1_000, 100), after=scrape(9, 5_000, 2_100))
    assert (found.runs[0].get("preemptions"), found.runs[0].get("prefix_hit_rate")) == (6, 0.5)
    assert found.provenance["preemptions"] == "before to after"
    assert not {"preemptions", "prefix_hit_rate"} & {gap.field for gap in found.missing}


def test_a_rounded_copy_of_the_same_runs_is_not_counted_again(bundle):
    console = (
        "============ Serving Benchmark Result ============\nSuccessful requests: 64\nMean TTFT (ms): 100.00\n====\n"
    )
    found = bundle(result=json.dumps(RESULT), console=console)
    assert len(found.runs) == 1
    assert found.runs[0].get("output_tok_s") == 819.2
    assert "rounded_copy" in [warning.code for warning in found.warnings]


def test_scrapes_around_a_restart_are_not_differenced(bundle):
    restarted = scrape(0, 10, 0).replace("1.7e+09", "1.8e+09")
    found = bundle(before=scrape(9, 5_000, 2_100), after=restarted)
    assert "restart" in [warning.code for warning in found.warnings]


def test_files_that_contradict_are_listed_and_the_first_one_counts(bundle):
    found = bundle(log=LOG, scrape=scrape(0, 10, 0, tokens=99_999))
    assert found.server["kv_tokens"] == 152_880
    texts = [warning.text for warning in found.warnings if warning.code == "contradiction"]
    assert texts == ["kv_tokens: log says 152880, scrape says 99999"]


def test_what_a_run_states_itself_stays_when_the_server_says_otherwise(bundle):
    found = bundle(result=json.dumps({**RESULT, "kv_cache_dtype": "fp8"}), log=LOG)
    assert found.runs[0].get("kv_cache_dtype_requested") == "fp8"
    assert "kv_cache_dtype_requested: the run says fp8, log says nvfp4" in [warning.text for warning in found.warnings]


def test_a_bundle_asks_only_for_what_no_file_states(bundle):
    alone = {gap.field for gap in bundle(result=json.dumps(RESULT)).missing}
    together = {gap.field for gap in bundle(result=json.dumps(RESULT), log=LOG, scrape=scrape(0, 10, 5)).missing}
    assert {"model", "gpu", "version", "kv_cache_dtype_requested", "kv_cache_dtype_resolved", "preemptions"} <= alone
    assert {"gpu", "gpu_count", "weight_format"} <= together
    assert not {"model", "version", "kv_cache_dtype_requested", "kv_cache_dtype_resolved", "preemptions"} & together


def test_a_refused_file_leaves_the_others_standing(bundle):
    found = bundle(result=json.dumps(RESULT), broken="{")
    assert len(found.runs) == 1
    assert [reading.error is not None for reading in found.files] == [False, True]


def test_metadata_of_the_planner_closes_the_open_questions(bundle):
    stated = {
        "gpu": "NVIDIA B200",
        "gpu_count": "1",
        "tp": "1",
        "vllm_version": "0.33.0",
        "weight_format": "nvfp4",
        "kv_cache_dtype": "nvfp4",
        "attention_backend": "FLASHINFER",
        "gpu_memory_utilization": "0.9",
        "max_num_seqs": "64",
        "max_num_batched_tokens": "8192",
        "prefix_caching": "False",
        "dataset": "random",
        "input_len": "1024",
        "output_len": "128",
    }
    run = bundle(result=json.dumps({**RESULT, **stated})).runs[0]
    assert (run.get("framework"), run.get("version"), run.get("gpu_count")) == ("vllm", "0.33.0", 1)
    assert (run.get("gpu_memory_utilization"), run.get("enable_prefix_caching")) == (0.9, False)
    assert (run.get("isl_target"), run.get("osl_target"), run.get("isl_mean")) == (1024, 128, 1024.0)


def test_an_older_scrape_without_block_counts_states_none(tmp_path):
    path = Path(tmp_path / "metrics.txt")
    path.write_text(scrape(0, 0, 0))
    server = read_file(path).server
    assert "num_blocks" not in server and "observed" not in server
    assert "prefix_hit_rate" not in server  # nothing was asked yet
    assert server["preemptions"] == 0


def test_a_remark_names_the_run_of_the_bundle(bundle):
    saturated = {**RESULT, "request_rate": 100.0}
    found = bundle(first=json.dumps(RESULT), second=json.dumps(saturated))
    assert [(warning.code, warning.run) for warning in found.warnings] == [("saturated", 1)]
