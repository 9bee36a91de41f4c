"""Shapes beside the documented one: SGLang, with sides apart, lengths drawn, batches, answers that came whole."""

import pytest

from tests.readers.shapes import asked, values

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
