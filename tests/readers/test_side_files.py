"""Files beside a result: manifests, sums, a server's own answer, nvidia-smi; facts, never runs."""

import json

import pytest

from nvdash.readers.bundle import combine, read_file


def read(tmp_path, content: str, name: str = "side.json"):
    path = tmp_path / name
    path.write_text(content)
    return read_file(path)


MANIFEST = {
    "model": "nvidia/Qwen3-32B-NVFP4",
    "hardware": {"gpu": "NVIDIA B200", "hostname": "secret"},
    "runtime": {"vllm": "0.33.0", "flashinfer": "0.7.2", "torch": "2.13.0"},
    "profile": {"KV_CACHE_DTYPE": "nvfp4", "MAX_NUM_SEQS": "64", "GPU_MEMORY_UTILIZATION": "0.88"},
    "version": "9.9",
}


def test_a_manifest_is_read_by_the_names_of_its_keys_wherever_they_stand(tmp_path):
    found = read(tmp_path, json.dumps(MANIFEST))
    assert (found.format, found.runs) == ("side-file", ())
    assert dict(found.server) == {
        "model": "nvidia/Qwen3-32B-NVFP4",
        "gpu": "NVIDIA B200",
        "framework": "vllm",
        "version": "0.33.0",  # not the manifest's own
        "flashinfer_version": "0.7.2",
        "kv_cache_dtype_requested": "nvfp4",
        "max_num_seqs": 64,
        "gpu_memory_utilization": 0.88,
        "torch": "2.13.0",
    }


def test_sums_of_a_scrape_keep_their_names(tmp_path):
    server = read(tmp_path, '{"hits": 230208, "queries": 401484, "hit_rate": 0.5734}').server
    assert (server["prefix_cache_hits_tokens"], server["prefix_cache_queries_tokens"]) == (230_208, 401_484)
    assert server["prefix_hit_rate"] == 0.5734


@pytest.mark.parametrize(
    "content", ['{"note": "x"}', '{"reqs": 96, "warmup": 16, "model": "m"}', '{"a": {"b": {"c": 1}}}']
)
def test_a_file_with_too_few_known_names_is_no_manifest(tmp_path, content):
    assert read(tmp_path, content).error is not None


def test_what_an_sglang_server_says_of_itself_is_requested_and_in_effect(tmp_path):
    info = {
        "model_path": "/models/Qwen3-32B",
        "tp_size": 2,
        "mem_fraction_static": 0.85,
        "schedule_policy": "fcfs",
        "kv_cache_dtype": "auto",
        "attention_backend": None,
        "api_key": "sk-secret",
        "version": "0.5.23",
        "internal_states": [
            {"attention_backend": "flashinfer", "memory_usage": {"weight": 30.5, "token_capacity": 9000}}
        ],
    }
    found = read(tmp_path, json.dumps(info))
    assert found.format == "sglang-server-info"
    expected = {
        "model": "Qwen3-32B",
        "version": "0.5.23",
        "tp": 2,
        "attention_backend": "flashinfer",
        "kv_tokens": 9000,
    }
    assert {name: found.server[name] for name in expected} == expected
    assert "secret" not in str(found.as_dict())


SMI = """\
| NVIDIA-SMI 580.142                Driver Version: 580.142        CUDA Version: 13.0     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0  On |                  N/A |
|    0   N/A  N/A          620580      C   VLLM::EngineCore                      85593MiB |
"""


def test_nvidia_smi_names_the_gpu_and_no_process(tmp_path):
    found = read(tmp_path, SMI, "smi.txt")
    assert (found.format, dict(found.server)) == (
        "nvidia-smi",
        {"driver": "580.142", "gpu": "NVIDIA GB10", "gpus_visible": 1},
    )


def test_the_list_of_nvidia_smi_closes_the_question_for_the_gpu(tmp_path):
    gpus = read(tmp_path, "GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA B200 (UUID: GPU-2)\n", "list.txt")
    log = read(tmp_path, "INFO 1-1 [kv_cache_utils.py:1] GPU KV cache size: 1,000 tokens\n", "server.log")
    bundle = combine([log, gpus])
    assert bundle.server["gpu"] == "NVIDIA B200"
    assert "gpu" not in {gap.field for gap in bundle.missing}
    assert "gpu_count" in {gap.field for gap in bundle.missing}  # visible is not used


def test_several_gpu_models_are_named_and_none_is_chosen(tmp_path):
    found = read(tmp_path, "GPU 0: NVIDIA B200 (UUID: GPU-1)\nGPU 1: NVIDIA L4 (UUID: GPU-2)\n", "list.txt")
    assert "gpu" not in found.server
    assert [warning.code for warning in found.warnings] == ["mixed_gpus"]
