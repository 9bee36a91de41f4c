"""How many values a model's weights have, by component and layer, counted from its config.

Counted from geometry, never from a model's name. Every part carries a module name, so that the patterns a checkpoint
leaves wide can be matched, and says how tensor parallelism splits it. A layer whose shape is not in the config
refuses the count by key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nvdash.footprint.caches import Cache, Layout
from nvdash.footprint.class_defaults import model_type, with_defaults
from nvdash.footprint.experts import mlp_parts
from nvdash.footprint.layers import layout
from nvdash.readers.config import Keys, text_tower

TIED_TYPES = ("gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma4", "opt", "gpt2", "falcon", "bloom")
"""Classes whose output head is the embedding unless the config says otherwise (transformers class defaults)."""
GATED_ATTENTION = ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text")
"""Classes whose query projection also yields an output gate of its size (vLLM 0.33.0 models/qwen3_next.py)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Weights that share a component, a layer and a way of being split."""

    component: str
    """embedding, lm_head, attention, state, mlp, experts, router, norms, vision, drafter, scales, other."""
    name: str
    values: int
    layer: int | None = None
    split: str = "tp"
    """tp: divided; kv: divided up to one KV head each; none: every rank holds all of it."""
    kv_heads: int = 0
    linear: bool = True
    """Whether it is a linear layer, which a quantiser may narrow."""


def count_parts(
    config: Mapping[str, Any], with_drafter: bool = False, layers: Layout | None = None
) -> tuple[Part, ...]:
    """Every part of a model's weights; raises `LayoutRefused` or `ConfigError` naming the missing key.

    Prediction layers of the model's own (MTP) count only when they are loaded.
    """
    layers = layers or layout(config)
    keys = Keys(with_defaults(text_tower(config)))
    width = keys.need("hidden_size", "n_embd", "d_model")
    parts = [*_ends(keys, width, layers), *_decoder(keys, width, layers), *_vision(config)]
    if with_drafter:
        parts += _drafter(keys, width, layers)
    return tuple(part for part in parts if part.values)


def total_values(parts: tuple[Part, ...]) -> int:
    """The number of parameters."""
    return sum(part.values for part in parts)


def is_tied(keys: Keys) -> bool:
    """Whether the output head is the embedding."""
    stated = keys.flag("tie_word_embeddings")
    return stated if stated is not None else model_type(keys.values).removesuffix("_text") in TIED_TYPES


def _ends(keys: Keys, width: int, layers: Layout) -> Iterator[Part]:
    vocabulary = keys.need("vocab_size", "padded_vocab_size")
    projected = keys.count("word_embed_proj_dim") or width
    yield Part("embedding", "model.embed_tokens", vocabulary * projected, linear=False)
    positions = (layers.max_position or 0) if model_type(keys.values) in ("opt", "gpt2") else 0
    yield Part("embedding", "model.embed_positions", positions * width, split="none", linear=False)
    if not is_tied(keys):
        yield Part("lm_head", "lm_head", vocabulary * projected)
    per_layer = keys.count("hidden_size_per_layer_input", low=0) or 0
    rows = keys.count("vocab_size_per_layer_input") or 0
    yield Part("embedding", "model.embed_tokens_per_layer", rows * per_layer * layers.num_layers, linear=False)
    yield Part("norms", "model.norm", width, split="none", linear=False)


def _decoder(keys: Keys, width: int, layers: Layout) -> Iterator[Part]:
    by_layer: dict[int, list[Cache]] = {}
    for cache in layers.caches:
        by_layer.setdefault(cache.layer, []).append(cache)
    for layer in range(layers.num_layers):
        for cache in by_layer.get(layer, ()):
            yield from _mixer(keys, width, cache)
        yield from (
            Part(component, f"model.layers.{layer}.{name}", values, layer, split)
            for component, name, values, split in mlp_parts(keys, width, layer)
        )
        yield Part("norms", f"model.layers.{layer}.norms", 2 * width, layer, "none", linear=False)


def _drafter(keys: Keys, width: int, layers: Layout) -> Iterator[Part]:
    """Each prediction layer as one more decoder layer like the last, behind a projection of two widths into one."""
    for cache in layers.mtp or ():
        for part in _mixer(keys, width, cache):
            yield replace(part, component="drafter", name=f"mtp.{part.name}")
        if cache.kind == "index":
            continue
        for _, name, values, split in mlp_parts(keys, width, layers.num_layers - 1):
            yield Part("drafter", f"mtp.{name}", values, cache.layer, split)
        yield Part("drafter", "mtp.fc", 2 * width * width, cache.layer, "none")


def _mixer(keys: Keys, width: int, cache: Cache) -> Iterator[Part]:
    """What mixes tokens in one layer: heads, a latent, or a recurrent state; an index key belongs to the latter two."""
    if cache.kind == "state":
        yield from _state(keys, width, cache)
    elif cache.kind == "mla":
        yield from _latent(keys, width, cache)
    elif cache.kind == "index":
        yield from _indexer(keys, width, cache)
    elif cache.kind != "mla_sliding":
        yield from _heads(keys, width, cache)


def _heads(keys: Keys, width: int, cache: Cache) -> Iterator[Part]:
    queries = cache.query_heads or keys.need("num_attention_heads", "n_head")
    gate = 2 if model_type(keys.values) in GATED_ATTENTION else 1
    shared = keys.flag("attention_k_eq_v") and cache.kind == "full"
    values = 0 if shared else width * cache.kv_heads * cache.value_size
    base = f"model.layers.{cache.layer}.self_attn"
    for name, amount, split in (
        ("q_proj", gate * width * queries * cache.key_size, "tp"),
        ("k_proj", width * cache.kv_heads * cache.key_size, "kv"),
        ("v_proj", values, "kv"),
        ("o_proj", queries * cache.value_size * width, "tp"),
    ):
        yield Part("attention", f"{base}.{name}", amount, cache.layer, split, cache.kv_heads)


def _latent(keys: Keys, width: int, cache: Cache) -> Iterator[Part]:
    """Down projections stay whole on every rank, up projections are split by head."""
    heads, rank, rope = cache.query_heads or keys.need("num_attention_heads"), cache.key_size, cache.value_size
    size = keys.need("qk_nope_head_dim") + rope
    value = keys.need("v_head_dim")
    low_rank = keys.count("q_lora_rank")
    base = f"model.layers.{cache.layer}.self_attn"
    queries = [("q_a_proj", width * low_rank, "none"), ("q_b_proj", low_rank * heads * size, "tp")] if low_rank else []
    for name, amount, split in (
        *(queries or [("q_proj", width * heads * size, "tp")]),
        ("kv_a_proj_with_mqa", width * (rank + rope), "none"),
        ("kv_b_proj", rank * heads * (size - rope + value), "tp"),
        ("o_proj", heads * value * width, "tp"),
    ):
        yield Part("attention", f"{base}.{name}", amount, cache.layer, split)


def _indexer(keys: Keys, width: int, cache: Cache) -> Iterator[Part]:
    """The small heads that choose what a sparse layer attends to; every rank holds them."""
    heads = keys.count("index_n_heads")
    if heads is None:
        return
    source = keys.count("q_lora_rank") or width
    amount = source * heads * cache.key_size + width * (cache.key_size + heads)
    yield Part("attention", f"model.layers.{cache.layer}.self_attn.indexer", amount, cache.layer, "none")


def _state(keys: Keys, width: int, cache: Cache) -> Iterator[Part]:
    state = cache.state
    if state is None or state.kind not in ("gdn", "mamba2"):
        kind = state.kind if state else None
        raise keys.fail("layer_types", "recurrent layers whose weights can be counted (gdn, mamba2)", kind)
    convolved = state.channels + state.groups * state.group_channels
    if state.kind == "gdn":
        inner = keys.need("linear_num_value_heads") * keys.need("linear_value_head_dim")
        entered = convolved + inner + 2 * state.heads
    else:
        inner = state.channels
        entered = convolved + inner + state.heads
    base = f"model.layers.{cache.layer}.linear_attn"
    yield Part("state", f"{base}.in_proj", width * entered, cache.layer)
    yield Part("state", f"{base}.out_proj", inner * width, cache.layer)
    yield Part("state", f"{base}.conv1d", convolved * (state.steps + 1) + 3 * state.heads, cache.layer, linear=False)


def _vision(config: Mapping[str, Any]) -> Iterator[Part]:
    """A vision tower as blocks of four attention and two MLP matrices, with its patches and projector."""
    inner = Keys(config).inner("vision_config")
    if inner is None:
        return
    depth = inner.count("depth", "num_hidden_layers", "vt_num_hidden_layers")
    width = inner.count("hidden_size", "vt_hidden_size")
    hidden = inner.count("intermediate_size", "vt_intermediate_size")
    if depth is None or width is None or hidden is None:
        return
    patch = inner.count("patch_size") or 0
    entered = (inner.count("in_channels") or 3) * (inner.count("temporal_patch_size") or 1) * patch**2 * width
    yield Part("vision", "visual.blocks", depth * (4 * width**2 + 2 * width * hidden) + entered, linear=False)
