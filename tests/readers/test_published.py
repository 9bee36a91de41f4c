"""Published measurements: whole, with provenance, their parts apart."""

import pytest

from nvdash.errors import Problems
from nvdash.readers import published


def report(name):
    return next(item for item in published.load() if item.id == name)


def values(name):
    return {(row.metric, row.kv_cache_dtype): row.value for row in report(name).measurements}


def test_the_file_holds_every_report_once():
    reports = published.load()
    assert len(reports) == 28
    assert sum(len(item.measurements) for item in reports) == 224
    assert {row.as_dict()["provenance"] for item in reports for row in item.measurements} == {"report"}


def test_the_seed_report_stands_as_one_with_its_parts_apart():
    seed = values("seed-sm120")
    assert seed["attention_prefill_time_total", "nvfp4"] == 145.8
    assert seed["attention_prefill_time_total", "fp8_e4m3"] == 84.0
    assert seed["decode_time_change_vs_fp8", "nvfp4"] == -22
    assert seed["append_kernel_time_ratio_vs_fp8", "nvfp4"] == 2.8
    assert seed["append_kernel_time_total", "nvfp4"] == 7
    assert (seed["batch_completion_time", "nvfp4"], seed["preemptions", "nvfp4"]) == (102.3, 0)
    assert (seed["batch_completion_time", "fp8_e4m3"], seed["preemptions", "fp8_e4m3"]) == (65.4, 6)
    parts = {row.part for row in report("seed-sm120").measurements}
    assert parts == {"prefill", "decode", "append", "whole batch"}
    assert "no general conclusion" in report("seed-sm120").note
    assert any("48 matched causal" in str(row.workload) for row in report("seed-sm120").measurements)


def test_less_than_one_percent_stands_beside_the_qwen_numbers():
    assert report("nvidia-blog").beside == ("vllm-45187",)
    assert report("vllm-45187").beside == ("nvidia-blog",)
    found = values("vllm-45187")
    assert [found["aime25_accuracy", dtype] for dtype in ("bf16", "nvfp4", "nvfp4_4over6")] == [66.67, 64.12, 64.71]
    assert [found["livecodebench_accuracy", d] for d in ("bf16", "nvfp4", "nvfp4_4over6")] == [54.85, 52.42, 53.74]
    assert [found["output_tok_s", dtype] for dtype in ("bf16", "nvfp4", "nvfp4_4over6")] == [12300, 20000, 19400]
    row = report("vllm-45187").measurements[0]
    assert (row.gpu_id, row.model_base) == ("b200-hgx", "Qwen/Qwen3-8B")


def test_a_slip_in_the_file_is_told_with_line_and_key(tmp_path):
    path = tmp_path / "published.yaml"
    path.write_text(
        "- id: a\n  title: A\n  shared: {source: s, verified: v}\n  measurements:\n"
        "  - {id: m1, part: prefil, metric: x, value: many, unit: ms, gpus: y}\n"
        "  - {id: m1, part: decode, metric: x, value: 1}\n"
    )
    with pytest.raises(Problems) as refusal:
        published.load(path)
    text = str(refusal.value)
    for part in ("published.yaml:1 m1", "'gpus'", "'prefil'", "'many'", "no unit", "'m1' twice"):
        assert part in text
