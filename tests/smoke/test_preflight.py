"""What is missing here, each with the line that fixes it; jobs for elsewhere."""

import pytest

from nvdash.readers.yaml_rows import parse_yaml
from nvdash.smoke import emit, preflight
from nvdash.smoke.preflight import Device, engine_items, parse_devices, why_not

LISTED = "0, NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607, 31000, Disabled, GPU-aaa\nbroken row\n"
GPU = parse_devices(LISTED, "")[0]
READY = {
    "torch": "2.13.0",
    "vllm": "0.33.0",
    "cuda": "13.0",
    "arch_list": ["sm_90", "sm_120"],
    "activities": ["ProfilerActivity.CPU", "ProfilerActivity.CUDA"],
    "flashinfer-python": "0.6.18",
    "flashinfer-cubin": "0.6.18",
    "flashinfer-jit-cache": "0.6.18+cu130",
    "nvcc": True,
    "ninja": True,
}


def missing(facts, engine="vllm"):
    return {
        item.item.partition(": ")[2]: item.fix for item in engine_items(engine, facts, [GPU]) if item.ok is not True
    }


def test_the_drivers_tables_are_read_and_broken_rows_left_out():
    assert Device(0, "NVIDIA GeForce RTX 5090", "12.0", "580.95.05", 32607, 31000, "Disabled", "GPU-aaa") == GPU
    shared = parse_devices(LISTED, "GPU-aaa, 4242\nGPU-bbb, 7\n")[0]
    assert (shared.other_pids, shared.is_shared, GPU.is_shared) == ((4242,), True, False)


def test_a_machine_that_has_everything_misses_nothing():
    assert missing(READY) == {}
    assert why_not("vllm", READY, [GPU]) is None


@pytest.mark.parametrize(
    ("change", "item", "fix"),
    [
        ({"arch_list": ["sm_90"]}, "torch for sm_120", "install a torch built for this GPU"),
        ({"activities": ["ProfilerActivity.CPU"]}, "kernel profiler", "pip install nvidia-cuda-cupti"),
        ({"flashinfer-cubin": "0.6.17"}, "flashinfer-cubin", "pip install flashinfer-cubin==0.6.18"),
        ({"nvcc": False}, "nvcc", "CUDA_HOME"),
        ({"ninja": False}, "ninja", "pip install ninja"),
        ({"vllm": None}, "package", "pip install vllm"),
    ],
)
def test_each_missing_thing_comes_with_the_line_that_fixes_it(change, item, fix):
    facts = {key: value for key, value in {**READY, **change}.items() if value is not None}
    assert fix in missing(facts)[item]


def test_an_engine_without_an_interpreter_says_which_variable_names_one(monkeypatch):
    monkeypatch.delenv("NVDASH_PYTHON_VLLM", raising=False)
    assert preflight.interpreter("vllm") is None
    assert "NVDASH_PYTHON_VLLM" in missing(None)["interpreter"]
    assert why_not("vllm", None, []) == "vllm: interpreter: NVDASH_PYTHON_VLLM is not set"


def test_this_machine_can_run_the_reference_engine(monkeypatch):
    monkeypatch.setattr(preflight, "ask_driver", lambda arguments: None)
    for engine in ("VLLM", "SGLANG", "FLASHINFER"):
        monkeypatch.delenv(f"NVDASH_PYTHON_{engine}", raising=False)
    found = preflight.preflight()
    assert (found["gpu"], found["engines"]["reference"]) == (None, None)
    assert found["items"][0]["fix"].startswith("./run smoke")


def test_an_interpreter_that_does_not_start_is_told_apart():
    assert "error" in preflight.ask_interpreter("/nowhere/python")


QUESTION = {"engine": "vllm", "release": "0.33.0", "gpu": "RTX 5090", "kv_cache_dtype": "nvfp4", "sinks": None}


def test_the_slurm_line_carries_the_question():
    line = emit.slurm(QUESTION)
    assert "srun --gres=gpu:1" in line
    assert line.endswith(
        "./run smoke --engine vllm --release 0.33.0 --gpu 'RTX 5090' --kv-cache-dtype nvfp4 --out smoke-report.json"
    )


def test_the_kubernetes_job_is_yaml_with_one_gpu_and_no_retry():
    job = parse_yaml(emit.kubernetes(QUESTION).encode(), "job")
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (job["spec"]["backoffLimit"], spec["restartPolicy"]) == (0, "Never")
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert container["image"] == "vllm/vllm-openai:v0.33.0"
    assert "--kv-cache-dtype nvfp4" in container["command"][2]
