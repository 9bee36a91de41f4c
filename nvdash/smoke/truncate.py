"""A model small enough for a smoke test: the first layers of a config, at least one of each kind."""

from collections.abc import Mapping
from typing import Any

from nvdash.footprint.caches import Cache, Layout
from nvdash.footprint.layers import layout
from nvdash.smoke.spec import Layer
from nvdash.targets import HeadLayout

COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers")
EXPERT_KEYS = (
    *("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
    *("num_experts_per_tok", "moe_topk", "top_k_experts", "num_experts_per_token"),
)
COUNTED = ("n_sliding", "n_full", "num_parameters")
"""Counts of the whole model, which a cut one no longer has."""
FIRST = {"kda_layers": 1, "full_attn_layers": 1, "attn_layer_indices": 0, "full_attn_idxs": 0}
"""Lists of layer numbers, by the number of the first layer."""
SHARED = "num_kv_shared_layers"
"""So many last layers read the cache of an earlier one."""
GROUPS = {"n_group": 1, "topk_group": 1}
MAX_EXPERTS, MAX_VOCABULARY = 8, 16_384
"""A smaller vocabulary makes some benchmark clients draw unknown tokens."""


def truncated(config: Mapping[str, Any]) -> tuple[dict[str, Any], Layout]:
    """The config cut to the fewest leading layers that show every kind, with few experts and words, and its layout."""
    whole = layout(config)
    kinds = {_kind(cache) for cache in whole.caches}
    for count in range(1, whole.num_layers + 1):
        if {_kind(cache) for cache in whole.caches if cache.layer < count} >= kinds:
            break
    small = _cut(config, whole.num_layers, count)
    return small, layout(small)


def _kind(cache: Cache) -> tuple[object, ...]:
    return cache.kind, cache.kv_heads, cache.key_size, cache.value_size, cache.window


def _cut(value: Any, layers: int, count: int) -> Any:
    """The config with its layer counts, per-layer lists, experts and vocabulary cut, in every tower."""
    if not isinstance(value, Mapping):
        return value
    vocabulary = value.get("vocab_size")
    words = min(vocabulary, MAX_VOCABULARY) if isinstance(vocabulary, int) else MAX_VOCABULARY
    cut: dict[str, Any] = {}
    for key, item in value.items():
        if key in COUNTED:
            continue
        if key in COUNTS and item == layers:
            cut[key] = count
        elif key in FIRST and isinstance(item, list):
            cut[key] = [layer for layer in item if layer < count + FIRST[key]]
        elif key == SHARED and isinstance(item, int):
            cut[key] = max(0, item - (layers - count))
        elif _is_per_layer(key, item) and len(item) == layers and layers > 1:
            cut[key] = item[:count]
        elif key in EXPERT_KEYS and isinstance(item, int):
            cut[key] = min(item, MAX_EXPERTS)
        elif key in GROUPS:
            cut[key] = GROUPS[key]
        elif key == "vocab_size":
            cut[key] = words if isinstance(item, int) else item
        elif key.endswith("_token_id") and isinstance(item, int) and item >= words:
            cut[key] = 0
        else:
            cut[key] = _cut(item, layers, count)
    return cut


def _is_per_layer(key: str, item: Any) -> bool:
    """A list, or the letters of a pattern, which have an entry per layer when they are as long as the model."""
    return isinstance(item, list) or (isinstance(item, str) and key.endswith("pattern"))


def layers_of(built: Layout) -> tuple[tuple[Layer, ...], bool]:
    """The attention layers of a layout, and whether they are all that keeps something."""
    layers = tuple(layer for cache in built.caches if (layer := _layer(cache, built.query_heads or 0)))
    return layers, len(layers) == len(built.caches)


def _layer(cache: Cache, query_heads: int) -> Layer | None:
    heads = cache.query_heads or query_heads or cache.kv_heads
    if cache.kind == "mla":
        return Layer("mla", heads, 1, cache.key_size + cache.value_size, cache.key_size)
    if cache.kind == "full":
        return Layer("full", heads, cache.kv_heads, cache.key_size, cache.value_size)
    if cache.kind in ("sliding", "chunked"):
        return Layer("window", heads, cache.kv_heads, cache.key_size, cache.value_size, cache.window)
    return None


def layers_of_heads(heads: HeadLayout) -> tuple[Layer, ...]:
    """The layers a head layout stands for: a windowed one beside a full one."""
    kind = "mla" if heads.kind in ("mla", "mla_sparse") else "full"
    sizes = (heads.query_heads, heads.kv_heads, heads.key_size, heads.value_size)
    full = Layer(kind, *sizes)
    return (full, Layer("window", *sizes, heads.window)) if heads.window and kind == "full" else (full,)


def llama_config(heads: HeadLayout) -> dict[str, Any] | None:
    """A model around a plain head layout, for engines that build one; None where no plain model has it."""
    if heads.kind not in ("mha", "gqa", "mqa") or heads.key_size != heads.value_size or heads.window or heads.sinks:
        return None
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 512,
        "num_hidden_layers": 1,
        "num_attention_heads": heads.query_heads,
        "num_key_value_heads": heads.kv_heads,
        "head_dim": heads.key_size,
        "vocab_size": MAX_VOCABULARY,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
