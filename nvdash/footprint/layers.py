"""A model's config as the caches of its layers, or a refusal that names the key.

The field's own keys decide (layer_types, full_attention_interval, kv_lora_rank, …), never a list of model names.
A key that shapes a cache and that nothing here reads refuses the config: a silent default would be a wrong number.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nvdash.footprint.caches import Cache, Layout, LayoutRefused
from nvdash.footprint.class_defaults import MTP_LAYERS, model_type, with_defaults
from nvdash.footprint.kinds import MAX_LAYERS, layer_count, layer_kinds
from nvdash.footprint.latent import compressed_caches, compressed_layer, index_key, latent_caches
from nvdash.footprint.lengths import max_position
from nvdash.footprint.shapes import Heads, full_heads, head_size, per_layer_kv_heads, query_heads, sliding_heads
from nvdash.footprint.states import state_of
from nvdash.footprint.unread import refuse_unread
from nvdash.readers.config import ConfigError, Keys, text_tower

ENCODER_ONLY = re.compile(r"^(bert|roberta|xlm-roberta|modernbert|deberta|nomic_bert|distilbert|albert|electra)")


def layout(config: Mapping[str, Any]) -> Layout:
    """The layers of the language model in this config; raises `LayoutRefused` naming the key that stands in the way."""
    values = with_defaults(text_tower(config))
    keys = Keys(values)
    if ENCODER_ONLY.match(model_type(values)):
        raise LayoutRefused("model_type", "a model that decodes", f"found {model_type(values)}, which keeps no cache")
    try:
        built = _layout(keys)
        refuse_unread(keys)
    except ConfigError as exc:
        raise LayoutRefused(exc.key, exc.expected, exc.found, exc.hint) from exc
    return built


def _layout(keys: Keys) -> Layout:
    caches = tuple(_caches(keys))
    if not caches:
        raise LayoutRefused("num_hidden_layers", "at least one layer with a cache", "found none")
    layers = layer_count(keys) or len(layer_kinds(keys))
    dtype = _dtype(keys)
    return Layout(
        caches=caches,
        num_layers=layers,
        dtype=dtype or "bfloat16",
        dtype_known=dtype is not None,
        family=_family(keys),
        query_heads=query_heads(keys),
        max_position=max_position(keys),
        sinks=_sinks(keys),
        model_type=model_type(keys.values),
        mtp=_mtp(keys, layers),
        encoder_tokens=keys.count("max_source_positions") or 0,
        chunk_size=keys.count("mamba_chunk_size", "chunk_size"),
        attention_chunk=keys.count("attention_chunk_size"),
    )


def _dtype(keys: Keys) -> str | None:
    """The model's own type; an unknown one is refused, because it decides what `auto` stores."""
    named = keys.word("torch_dtype", "dtype")
    if named is None:
        return None
    if named.removeprefix("torch.") not in ("bfloat16", "float16", "float32"):
        raise keys.fail("torch_dtype", "bfloat16, float16 or float32", named)
    return named.removeprefix("torch.")


def _sinks(keys: Keys) -> bool:
    """Whether the attention has learned sinks: gpt-oss by class, MiMo-V2 by key."""
    stated = keys.flag("add_swa_attention_sink_bias") or keys.flag("add_full_attention_sink_bias")
    return bool(stated) or model_type(keys.values) == "gpt_oss"


def _family(keys: Keys) -> str:
    if keys.values.get("compress_ratios"):
        return "deepseek_v4"
    if not keys.values.get("kv_lora_rank"):
        return ""
    return "mla_sparse" if keys.count("index_topk") else "mla"


def _caches(keys: Keys) -> list[Cache]:
    builders: tuple[tuple[str, Callable[[Keys], Iterator[Cache]]], ...] = (
        ("decoder_layers", _encoder_decoder),
        ("block_configs", _configured_blocks),
        ("compress_ratios", compressed_caches),
        ("kv_lora_rank", latent_caches),
    )
    for name, build in builders:
        if keys.raw(name) and not (name == "kv_lora_rank" and keys.flag("use_mla") is False):
            return list(build(keys))
    return list(_ordinary(keys))


def _ordinary(keys: Keys) -> Iterator[Cache]:
    """Key and value heads by kind of layer, states, cross-attention, and layers that reuse another's cache."""
    kinds = layer_kinds(keys)
    crossing = set(keys.items("cross_attention_layers", (int,)) or ())
    shared_from = len(kinds) - (keys.count("num_kv_shared_layers", low=0) or 0)
    listed = per_layer_kv_heads(keys, len(kinds))
    indexed = _block_indexed(keys, len(kinds))
    for layer, kind in enumerate(kinds):
        if layer >= shared_from or kind == "none":
            continue
        if layer in crossing:
            kind = "cross"
        if kind in ("state", "both"):
            yield Cache(layer, "state", state=state_of(keys))
        if kind != "state":
            yield _attention(keys, layer, "full" if kind == "both" else kind, listed)
        if layer in indexed:
            yield Cache(layer, "index", 1, indexed[layer], fixed_bytes=2 * indexed[layer])


def _attention(keys: Keys, layer: int, kind: str, listed: list[int] | None) -> Cache:
    if listed is not None:
        heads = Heads(listed[layer], *_sizes(keys), query_heads(keys))
    else:
        heads = sliding_heads(keys) if kind in ("sliding", "chunked") else full_heads(keys)
    window = _window(keys, kind, layer)
    return Cache(layer, kind, heads.kv_heads, heads.key_size, heads.value_size, window, query_heads=heads.query_heads)


def _sizes(keys: Keys) -> tuple[int, int]:
    size = head_size(keys)
    return size, keys.count("v_head_dim", low=0) or size


def _window(keys: Keys, kind: str, layer: int) -> int:
    if kind == "sliding":
        return keys.need("sliding_window", "sliding_window_size", "window_size")
    return keys.need("attention_chunk_size") if kind == "chunked" else 0


def _block_indexed(keys: Keys, layers: int) -> dict[int, int]:
    """MiniMax-M3: the layers with a 16-bit index key per token, and its width."""
    sparse = keys.inner("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention"):
        return {}
    width = sparse.need("sparse_index_dim")
    used = sparse.items("sparse_attention_freq", (int,))
    if used is None or len(used) != layers:
        raise sparse.fail("sparse_attention_freq", f"a 0 or 1 for each of {layers} layers", used)
    return {layer: width for layer, on in enumerate(used) if on}


def _encoder_decoder(keys: Keys) -> Iterator[Cache]:
    """Every decoder layer keeps its own keys and values and those of the encoder."""
    for layer in range(layer_count(keys) or 0):
        heads = full_heads(keys)
        for kind in ("full", "cross"):
            yield Cache(layer, kind, heads.kv_heads, heads.key_size, heads.value_size, query_heads=heads.query_heads)


def _configured_blocks(keys: Keys) -> Iterator[Cache]:
    """DeciLM and Nemotron-NAS: every block states its attention, or that it has none."""
    blocks = keys.raw("block_configs")
    if not isinstance(blocks, list):
        raise keys.fail("block_configs", "a list of blocks", blocks)
    heads = query_heads(keys)
    for layer, block in enumerate(blocks):
        part = Keys(block if isinstance(block, Mapping) else {}, f"block_configs[{layer}].").inner("attention")
        if part is None or heads is None:
            raise keys.fail("block_configs", "an attention part in every block", block)
        if part.flag("no_op") or part.flag("replace_with_linear"):
            continue
        group, window = part.need("n_heads_in_group"), part.count("window_length")
        size = full_heads(Keys({**keys.values, "num_key_value_heads": heads // group})).key_size
        yield Cache(layer, "sliding" if window else "full", heads // group, size, size, window or 0, query_heads=heads)


def _mtp(keys: Keys, layers: int) -> tuple[Cache, ...] | None:
    """The caches of the multi-token-prediction layers; None when the config offers none."""
    known = MTP_LAYERS.get(model_type(keys.values))
    if known is not None:
        return tuple(_attention(keys, layers + layer, known[0], None) for layer in range(known[1]))
    number = keys.count("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", low=0)
    kinds = keys.raw("mtp_layers_block_type") or keys.raw("mtp_hybrid_override_pattern")
    if not number:
        return None
    if number > MAX_LAYERS:
        raise keys.fail("num_nextn_predict_layers", f"at most {MAX_LAYERS} layers", number)
    full = sum(word in ("attention", "*") for word in kinds) if isinstance(kinds, (list, str)) else 1
    return tuple(cache for layer in range(number * full) for cache in _mtp_layer(keys, layers + layer))


def _mtp_layer(keys: Keys, layer: int) -> Iterator[Cache]:
    ratios = keys.items("compress_ratios", (int,))
    if ratios:
        yield from compressed_layer(keys, layer, ratios[layer] if layer < len(ratios) else 0)
        return
    if not keys.values.get("kv_lora_rank"):
        yield _attention(keys, layer, "full", None)
        return
    yield Cache(layer, "mla", 1, keys.need("kv_lora_rank"), keys.need("qk_rope_head_dim", low=0))
    if keys.count("index_topk") is not None:
        yield index_key(keys, layer)
