"""Kernels of a trace, event by event: counts, microseconds, device, and nothing about the host."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.readers.bundle import read_file
from nvdash.readers.traces import _CHUNK

DEVICE = {"id": 0, "name": "NVIDIA B200", "totalGlobalMem": 191_000_000_000, "computeMajor": 10, "computeMinor": 0}


def event(name: str, micros: float, category: str = "kernel") -> dict:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": 1.0,
        "dur": micros,
        "args": {"grid": [1, 1, 1]},
    }


def trace(*events: dict, **keys: object) -> dict:
    return {
        "schemaVersion": 1,
        "deviceProperties": [DEVICE],
        "host_name": "secret-node",
        "traceEvents": list(events),
        **keys,
    }


def read(tmp_path, value: object, name: str = "trace.json"):
    path = tmp_path / name
    content = json.dumps(value).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return read_file(path)


def test_kernels_are_added_up_by_name_longest_first(tmp_path):
    found = read(
        tmp_path, trace(event("gemm", 5), event("attention", 40), event("gemm", 15), event("copy", 9, "gpu_memcpy"))
    )
    assert [(row.name, row.calls, row.time_us, row.share_pct) for row in found.kernels] == [
        ("attention", 1, 40.0, 66.667),
        ("gemm", 2, 20.0, 33.333),
    ]
    assert (found.server["kernel_events"], found.server["kernel_time_us"]) == (3, 60.0)


def test_the_device_is_named_and_the_host_is_not(tmp_path):
    found = read(tmp_path, trace(event("gemm", 5)), "trace.json.gz")
    assert (found.server["gpu"], found.server["compute_capability"]) == ("NVIDIA B200", "10.0")
    assert "secret" not in str(found.as_dict())


def test_an_amd_device_has_no_cuda_capability(tmp_path):
    amd = {**DEVICE, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4}
    found = read(tmp_path, trace(event("gemm", 5), deviceProperties=[amd]))
    assert found.server["gpu"] == "AMD Instinct MI300X"
    assert "compute_capability" not in found.server


def test_on_a_cpu_the_compiled_attention_ops_are_the_kernels(tmp_path):
    events = [
        event("vllm::unified_attention_with_output", 9, "cpu_op"),
        event("_C::cpu_attention_with_kv_cache", 7, "cpu_op"),
    ]
    found = read(tmp_path, trace(*events, deviceProperties=[], vllm_version="0.32.0"))
    assert [row.name for row in found.kernels] == ["_C::cpu_attention_with_kv_cache"]
    assert (found.server["kernels_on"], found.server["version"]) == ("cpu", "0.32.0")


def test_events_across_the_pieces_in_which_a_trace_is_read_are_whole(tmp_path):
    long = event("n" * 1500, 1)
    number = 2 * _CHUNK // len(json.dumps(long)) + 10
    found = read(tmp_path, trace(*[long] * number))
    assert [(len(row.name), row.calls) for row in found.kernels] == [(1500, number)]


@given(names=st.lists(st.text(min_size=1, max_size=30), max_size=20), indent=st.sampled_from([None, 2]))
@settings(max_examples=60, deadline=None)
def test_every_kernel_event_is_counted_once(tmp_path_factory, names, indent):
    path = tmp_path_factory.getbasetemp() / "any.trace.json"
    path.write_text(json.dumps(trace(*[event(name, 1) for name in names]), indent=indent))
    assert sum(row.calls for row in read_file(path).kernels) == len(names)


@pytest.mark.parametrize("tail", ["", "]", ', {"name": "half', "}"])
def test_a_trace_that_was_cut_off_is_refused(tmp_path, tail):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [' + json.dumps(event("gemm", 1)) + tail)
    reading = read_file(path)
    assert reading.error is not None
    assert not reading.kernels
