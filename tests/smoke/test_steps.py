"""Steps of a trace, by hand, and the real traces of vLLM on a CPU."""

import gzip
import json

import pytest

from nvdash.smoke import steps


def event(category, name, start, length=1.0, **arguments):
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, "args": arguments}


@pytest.mark.parametrize(
    ("mark", "phase"),
    [
        ("execute_context_1(446)_generation_0(0)", "prefill"),
        ("execute_context_0(0)_generation_3(3)", "decode"),
        ("execute_context_1(10)_generation_2(2)", "mixed"),
        ("execute_context_0(0)_generation_0(0)", None),
        ("forward", None),
    ],
)
def test_a_step_mark_tells_its_phase(mark, phase):
    assert steps.phase_of(mark) == phase


def test_a_kernel_belongs_to_the_step_that_launched_it():
    events = [
        event("user_annotation", "execute_context_1(8)_generation_0(0)", 0, 10),
        event("user_annotation", "execute_context_0(0)_generation_1(1)", 20, 10),
        event("cuda_runtime", "cudaLaunchKernel", 5, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", 25, correlation=2),
        event("cuda_runtime", "cudaLaunchKernel", 15, correlation=3),
        event("kernel", "attend", 22, 4, correlation=1),  # runs while the next step is being launched
        event("kernel", "attend", 40, 2, correlation=2),
        event("kernel", "attend", 41, 1, correlation=3),
        event("cpu_op", "aten::mm", 5),
    ]
    found = steps.kernels(events)
    assert {(row["name"], row["phase"]): row["calls"] for row in found["rows"]} == {
        ("attend", "prefill"): 1,
        ("attend", "decode"): 1,
        ("attend", None): 1,
    }
    assert (found["steps"], found["device"]) == ({"prefill": 1, "decode": 1}, True)


def test_graph_launches_without_correlation_fall_back_to_the_devices_own_marks():
    events = [
        event("gpu_user_annotation", "execute_context_0(0)_generation_1(1)", 100, 10),
        event("kernel", "attend", 105),
    ]
    found = steps.kernels(events)
    assert [(row["phase"], row["calls"]) for row in found["rows"]] == [("decode", 1)]
    assert found["steps"] == {"decode": 1}


def test_traces_may_be_packed_and_are_bounded(tmp_path, monkeypatch):
    path = tmp_path / "rank0.pt.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [event("kernel", "k", 0), {"ph": "M"}]}).encode()))
    assert len(steps.read_events(path)) == 1
    monkeypatch.setattr(steps, "MAX_TRACE_BYTES", 10)
    with pytest.raises(ValueError, match="a trace over 10 bytes"):
        steps.read_events(path)


def test_several_traces_of_one_run_add_up():
    one = steps.kernels(
        [event("user_annotation", "execute_context_1(8)_generation_0(0)", 0), event("cpu_op", "x", 0.5)]
    )
    both = steps.merged([one, one])
    assert (both["steps"], both["rows"][0]["calls"]) == ({"prefill": 2}, 2)


def test_the_real_decode_trace_has_33_steps_of_four_layers(shared):
    found = steps.kernels(steps.read_events(shared / "samples/vllm-cpu/trace_decode_auto.min.json"))
    assert found["steps"] == {"prefill": 1, "decode": 32}
    calls = {(row["name"], row["phase"]): row["calls"] for row in found["rows"]}
    assert calls["_C::cpu_attention_with_kv_cache", "decode"] == 32 * 4
    assert calls["_C::cpu_attn_reshape_and_cache", "prefill"] == 4
