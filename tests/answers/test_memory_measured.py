"""Memory that stored servers printed stands in the place of estimates, for exactly their set-up."""

import pytest

from nvdash.answers import submission
from nvdash.answers.memory import memory
from nvdash.answers.memory_measured import release_line

# worded as vLLM 0.33 prints them
LINES = (
    "INFO 11-20 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.33.0) with config: "
    "model='meta-llama/Llama-3.1-8B-Instruct', max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, "
    "kv_cache_dtype=auto",
    "INFO 11-20 10:00:09 [gpu_model_runner.py:2653] Model loading took 15.00 GiB and 5.1 seconds",
    "INFO 11-20 10:00:19 [gpu_worker.py:298] Estimated CUDA graph memory: 0.50 GiB",
    "INFO 11-20 10:00:19 [gpu_worker.py:298] Available KV cache memory: {pool:.2f} GiB",
    "INFO 11-20 10:00:20 [gpu_worker.py:391] Free memory on device (93.10/95.00 GiB) on startup. Desired GPU memory "
    "utilization is (0.92, 87.40 GiB). Actual usage is 15.00 GiB for weight, {peak:.2f} GiB for peak activation, "
    "0.20 GiB for non-torch memory, and 0.60 GiB for CUDAGraph memory.",
)
QUESTION = {"model": "meta-llama/Llama-3.1-8B-Instruct", "release": "0.33.0", "weights": "bf16", "max_model_len": 8192}
TYPED = {"gpu": "rtx-pro-6000-ws", "weight_format": "bf16"}


def store(folder, pool=70.0, peak=1.25, **typed):
    path = folder / f"server-{pool}-{peak}.log"
    path.write_text("\n".join(LINES).format(pool=pool, peak=peak) + "\n")
    return submission.submit([path], {**TYPED, **typed})["added"][0]


def asked(**changes):
    return memory({**QUESTION, "gpu": TYPED["gpu"], **changes})


def items(answer):
    return {row["item"]: row for row in answer["items"]}


def gib(row):
    return [round(row[end] / 2**30, 3) for end in ("low_bytes", "high_bytes")]


def sources(answer):
    return {name: row["source"] for name, row in items(answer).items() if name not in ("gpu_total", "utilisation")}


def test_items_and_pool_are_measured_and_name_their_run(tmp_path):
    before = asked()
    assert set(sources(before).values()) == {"estimated"}
    run = store(tmp_path)
    found = items(asked())
    assert {row["source"] for name, row in found.items() if name not in ("gpu_total", "utilisation")} == {"measured"}
    # each within half of the last printed digit
    assert gib(found["weights"]) == [14.995, 15.005]
    assert gib(found["activation_peak"]) == [1.245, 1.255]
    assert gib(found["non_torch"]) == [0.195, 0.205]
    assert gib(found["cuda_graphs"]) == [0.495, 0.505]
    assert gib(found["kv_cache"]) == [69.995, 70.005]
    assert found["kv_cache"]["detail"] == f"printed by run {run}"


def test_tokens_follow_the_printed_pool(tmp_path):
    store(tmp_path)
    answer = asked()
    # 131,072 B per token, 16 tokens a block: 69.995 and 70.005 GiB hold 35,837 and 35,842 blocks
    assert (answer["kv_tokens_low"], answer["kv_tokens_high"]) == (35_837 * 16, 35_842 * 16)


def test_two_runs_give_an_interval(tmp_path):
    store(tmp_path, pool=70.0)
    store(tmp_path, pool=71.0)
    row = items(asked())["kv_cache"]
    assert gib(row) == [69.995, 71.005]
    assert row["detail"].endswith(" and 1 more")


def test_another_fraction_keeps_the_items_and_estimates_the_pool_from_them(tmp_path):
    store(tmp_path)
    found = sources(asked(gpu_memory_utilization=0.5))
    assert (found["kv_cache"], found["activation_peak"], found["weights"]) == ("estimated", "measured", "measured")


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu": "rtx-5090"},
        {"model": "Qwen/Qwen3-8B"},
        {"tp": 2},
        {"pp": 2},
        {"release": "0.32.0"},
        {"framework": "sglang", "release": "0.5.23"},
        {"layers": 4},
        {"draft_method": "ngram", "draft_tokens": 2},
    ],
)
def test_nothing_is_used_across_another(tmp_path, changes):
    store(tmp_path)
    assert "measured" not in sources(asked(**changes)).values()


def test_another_weight_format_keeps_neither_weights_nor_pool(tmp_path):
    store(tmp_path)
    found = sources(asked(weights="fp8"))
    assert (found["weights"], found["kv_cache"], found["non_torch"]) == ("estimated", "estimated", "measured")


def test_a_step_size_that_the_run_does_not_state_is_not_taken_for_equal(tmp_path):
    store(tmp_path)
    found = sources(asked(max_num_batched_tokens=2048))
    assert (found["activation_peak"], found["kv_cache"], found["weights"]) == ("estimated", "estimated", "measured")
    store(tmp_path, pool=72.0, max_num_batched_tokens="2048")
    answer = items(asked(max_num_batched_tokens=2048))
    assert gib(answer["kv_cache"]) == [71.995, 72.005]
    assert answer["kv_cache"]["detail"].endswith(", 2,048 batched tokens")


def test_eager_runs_tell_no_pool_with_graphs(tmp_path):
    store(tmp_path, cuda_graphs="NONE")
    found = sources(asked())
    assert (found["kv_cache"], found["cuda_graphs"], found["activation_peak"]) == ("estimated", "estimated", "measured")


def test_a_withdrawn_run_measures_nothing(tmp_path):
    run = store(tmp_path)
    submission.undo([run])
    assert "measured" not in sources(asked()).values()


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ("0.33.0", "0.33"),
        ("v0.9.2", "0.9"),
        ("0.20.2rc1.dev3", "0.20"),
        ("0.33rc1", None),
        ("nightly", None),
        (None, None),
    ],
)
def test_a_release_line_is_its_first_two_numbers(release, line):
    assert release_line(release) == line
