"""What people and tools call the controls of a run: flags, environment variables and metadata keys, one field each."""

from collections.abc import Mapping
from typing import Any

from nvdash.readers.fields import FIELDS
from nvdash.readers.record import flag, to_number

_SPELLINGS = {
    "model": "model_name model_path model_tag pretrained",
    "gpu": "gpu_name gpu_model gpu_type hardware_gpu device_name accelerator",
    "gpu_count": "num_gpus gpus n_gpus number_of_gpus world_size",
    "driver": "driver_version nvidia_driver",
    "tp": "tensor_parallel_size tp_size tensor_parallel",
    "pp": "pipeline_parallel_size pp_size",
    "dp": "data_parallel_size dp_size",
    "ep": "ep_size expert_parallel_size moe_ep_size",
    "dcp": "decode_context_parallel_size dcp_size",
    "version": "framework_version engine_version",
    "framework": "engine serving_framework",
    "flashinfer_version": "flashinfer flashinfer_python",
    "weight_format": "weights weight_dtype weights_format",
    "quantization": "quantisation quant quant_method",
    "kv_cache_dtype_requested": "kv_cache_dtype cache_dtype kv_dtype",
    "kv_cache_dtype_resolved": "kv_cache_dtype_effective effective_kv_cache_dtype kv_cache_format_effective",
    "attention_backend": "attn_backend vllm_attention_backend effective_attention_backend",
    "moe_backend": "effective_moe_backend moe_runner_backend",
    "enable_prefix_caching": "prefix_caching prefix_caching_enabled",
    "enable_chunked_prefill": "chunked_prefill chunked_prefill_enabled",
    "gpu_memory_utilization": "gpu_memory_utilisation gpu_mem_util",
    "max_model_len": "max_seq_len context_length max_context_len",
    "cuda_graphs": "cudagraph_mode effective_cuda_graph_mode cuda_graph_mode",
    "spec_method": "speculative_method speculative_algorithm spec_decode_method",
    "num_speculative_tokens": "num_spec_tokens speculative_num_draft_tokens",
    "dataset": "dataset_name",
    "isl_target": "input_len random_input_len isl_mean_target",
    "osl_target": "output_len random_output_len",
    "kv_tokens": "kv_cache_tokens kv_cache_size_tokens",
    "num_blocks": "num_gpu_blocks",
    "preemptions": "preemptions_total num_preemptions",
    "prefix_hit_rate": "hit_rate prefix_cache_hit_rate",
    "model_bytes": "checkpoint_bytes",
    "weights_gib": "weights_gib_per_gpu",
    "request_rate_rps": "rate request_rate",
}
_PLAIN = (
    "max_num_seqs max_num_batched_tokens max_running_requests chunked_prefill_size max_prefill_tokens block_size"
    " mem_fraction_static prefix_cache_state workload kv_usage_max running_avg waiting_avg"
).split()

FIELD_OF: dict[str, str] = {
    **{name: name for name in (*_SPELLINGS, *_PLAIN)},
    **{word: name for name, words in _SPELLINGS.items() for word in words.split()},
}
"""Normal field by spelling, in lower case with underscores."""

FRAMEWORK_OF = {
    "vllm": "vllm",
    "vllm_version": "vllm",
    "sglang": "sglang",
    "sglang_version": "sglang",
    "tensorrt_llm": "tensorrt-llm",
    "tensorrt_llm_version": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "trtllm_version": "tensorrt-llm",
}
"""Keys whose value is the version of the framework they name."""

_NOTHING = {"", "none", "null", "n/a", "na", "unknown"}


def controls(stated: Mapping[str, Any], skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The controls among these keys, by field name; the first spelling that says something wins."""
    found: dict[str, Any] = {}
    for key, value in stated.items():
        word = spelled(key)
        if word in skip or isinstance(value, Mapping | list) or str(value).strip().lower() in _NOTHING:
            continue
        if word in FRAMEWORK_OF and not isinstance(value, bool):
            found.setdefault("framework", FRAMEWORK_OF[word])
            found.setdefault("version", value)
        elif word in FIELD_OF and readable(FIELD_OF[word], value):
            found.setdefault(FIELD_OF[word], value)
    return found


def spelled(key: str) -> str:
    """A key as the spelling table has it."""
    return key.strip().lower().lstrip("-").replace("-", "_").replace(" ", "_")


def readable(name: str, value: Any) -> bool:
    """Whether a free value says something in the form that a field has."""
    kind = FIELDS[name].kind
    if kind == "text":
        return not isinstance(value, bool)
    return flag(value) is not None if kind == "flag" else to_number(value) is not None
