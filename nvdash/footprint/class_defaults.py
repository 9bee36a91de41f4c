"""What a config class fills in when the key is absent, as data with its source.

Used only where the architecture documents the value; any other missing key refuses the config by name.
Sources: the configuration classes of Hugging Face transformers 4.57 and 5.x (src/transformers/models/<type>/
configuration_<type>.py), and vLLM's own model files where they fall back to a value themselves.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_GEMMA3 = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
}
_GEMMA3N = {
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "num_kv_shared_layers": 15,
    "sliding_window": 512,
    "sliding_window_pattern": 5,
}
_MLLAMA = {
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
}
_GPT_OSS = {"sliding_window_pattern": 2, "head_dim": 64, "num_key_value_heads": 8}
_LLAMA4 = {"no_rope_layer_interval": 4, "attention_chunk_size": 8192, "head_dim": 128, "num_key_value_heads": 8}

_AS_QUERY_HEADS: Mapping[str, Any] = {"num_key_value_heads": None}
"""Classes that give every query head a KV head when the key is absent or null."""

BY_MODEL_TYPE: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("llama", "phi3", "olmo", "olmo2", "granite", "cohere", "internlm", "internlm2", "internlm3", "persimmon"),
            _AS_QUERY_HEADS,
        ),
        "qwen2": {"num_key_value_heads": 32, "max_window_layers": 28},
        "qwen2_moe": {"num_key_value_heads": 16, "max_window_layers": 28},
        "qwen3": {"num_key_value_heads": 32, "head_dim": 128, "max_window_layers": 28},
        "qwen3_moe": {"num_key_value_heads": 4, "max_window_layers": 28},
        "qwen3_next": {
            "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
            "linear_num_value_heads": 32,
        },
        "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
        "mixtral": {"num_key_value_heads": 8},
        "gemma": {"head_dim": 256},
        "gemma2": {"sliding_window_pattern": 2, "sliding_window": 4096, "head_dim": 256},
        "gemma3": _GEMMA3,
        "gemma3_text": _GEMMA3,
        "gemma3n": _GEMMA3N,
        "gemma3n_text": _GEMMA3N,
        "mllama_text_model": _MLLAMA,
        "cohere2": {"sliding_window_pattern": 4, "sliding_window": 4096},
        "gpt_oss": _GPT_OSS,
        "llama4": _LLAMA4,
        "llama4_text": _LLAMA4,
        "jamba": {"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4,
                  "mamba_expand": 2},
        "bamba": {"mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_chunk_size": 256},
        "granitemoehybrid": {"mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_d_state": 256, "mamba_chunk_size": 256},
        "nemotron_h": {"conv_kernel": 4, "n_groups": 8, "ssm_state_size": 128},
        "lfm2": {"conv_L_cache": 3},
        "lfm2_moe": {"conv_L_cache": 3},
        "glm4": {"head_dim": 128},
        "whisper": {"max_source_positions": 1500},
        "falcon_h1": {"block_types": ["hybrid"], "mamba_n_groups": 1, "mamba_d_conv": 4},
        "mamba": {"block_types": ["mamba"], "state_size": 16, "conv_kernel": 4, "expand": 2},
        "falcon_mamba": {"block_types": ["mamba"], "state_size": 16, "conv_kernel": 4, "expand": 2},
        "mamba2": {"block_types": ["mamba"], "state_size": 128, "conv_kernel": 4, "n_groups": 8},
        "gpt_bigcode": {"multi_query": True},
    }
)  # fmt: skip

TYPE_OF_ARCHITECTURE: Mapping[str, str] = MappingProxyType(
    {
        "LlamaForCausalLM": "llama",
        "Phi3ForCausalLM": "phi3",
        "Qwen2ForCausalLM": "qwen2",
        "Qwen2MoeForCausalLM": "qwen2_moe",
        "Qwen3ForCausalLM": "qwen3",
        "Qwen3MoeForCausalLM": "qwen3_moe",
        "Qwen3NextForCausalLM": "qwen3_next",
        "MistralForCausalLM": "mistral",
        "MixtralForCausalLM": "mixtral",
        "GemmaForCausalLM": "gemma",
        "Gemma2ForCausalLM": "gemma2",
        "Gemma3ForCausalLM": "gemma3_text",
        "Gemma3ForConditionalGeneration": "gemma3",
        "Gemma3nForCausalLM": "gemma3n_text",
        "Gemma3nForConditionalGeneration": "gemma3n",
        "Cohere2ForCausalLM": "cohere2",
        "GptOssForCausalLM": "gpt_oss",
        "Llama4ForCausalLM": "llama4_text",
        "Llama4ForConditionalGeneration": "llama4",
        "JambaForCausalLM": "jamba",
        "BambaForCausalLM": "bamba",
        "GraniteMoeHybridForCausalLM": "granitemoehybrid",
        "NemotronHForCausalLM": "nemotron_h",
        "Lfm2ForCausalLM": "lfm2",
        "Lfm2MoeForCausalLM": "lfm2_moe",
        "Glm4ForCausalLM": "glm4",
        "WhisperForConditionalGeneration": "whisper",
        "SmolLM3ForCausalLM": "smollm3",
        "FalconForCausalLM": "falcon",
        "OPTForCausalLM": "opt",
        "GPT2LMHeadModel": "gpt2",
        "GPTNeoXForCausalLM": "gpt_neox",
        "GPTJForCausalLM": "gptj",
        "GPTBigCodeForCausalLM": "gpt_bigcode",
        "BloomForCausalLM": "bloom",
        "MptForCausalLM": "mpt",
        "MPTForCausalLM": "mpt",
        "PhiForCausalLM": "phi",
        "QWenLMHeadModel": "qwen",
        "BaichuanForCausalLM": "baichuan",
        "FalconH1ForCausalLM": "falcon_h1",
        "MambaForCausalLM": "mamba",
        "Mamba2ForCausalLM": "mamba2",
        "Gemma4ForConditionalGeneration": "gemma4",
        "Gemma4ForCausalLM": "gemma4_text",
    }
)
"""The model type of a config that only names its architecture."""

MTP_LAYERS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "mimo_v2_flash": ("sliding", 1),
        "gemma4": ("shared", 0),
        "gemma4_text": ("shared", 0),
    }
)
"""Drafter layers that no config key states: their kind and number as the engine builds them.

MiMo-V2: vLLM 0.33.0 models/mimo_v2_mtp.py:54. Gemma 4: its assistant reads the target's cache and adds none.
"""


ATTENTION_PER_LAYER: Mapping[str, int] = MappingProxyType({"longcat_flash": 2})
"""Classes whose layers attend more than once; vLLM 0.33.0 models/longcat_flash.py."""

MULTI_HEAD_TYPES = frozenset(
    {"opt", "gpt2", "gpt_neox", "gptj", "gpt_neo", "bloom", "mpt", "phi", "codegen", "whisper", "bart", "baichuan"}
    | {"qwen", "falcon", "xglm", "biogpt", "gpt_bigcode"}
)
"""Classes without a KV-head key of their own: every query head has its KV head unless `multi_query` says one."""


def model_type(values: Mapping[str, Any]) -> str:
    """The config's own model type, or the one its architecture stands for; empty when neither says."""
    named = values.get("model_type")
    if isinstance(named, str):
        return named
    architectures = values.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    return TYPE_OF_ARCHITECTURE.get(first, "") if isinstance(first, str) else ""


def always_multi_head(values: Mapping[str, Any]) -> bool:
    """Whether the class gives every query head a KV head of its own."""
    return model_type(values) in MULTI_HEAD_TYPES


def with_defaults(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config with its class's documented defaults beneath it; a key set to null stays null."""
    return {**BY_MODEL_TYPE.get(model_type(values), {}), **values}
