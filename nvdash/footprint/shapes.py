"""How wide are the heads of a model, per kind of layer, read from the keys the field uses for it."""

from dataclasses import dataclass

from nvdash.footprint.caches import LayoutRefused
from nvdash.footprint.class_defaults import always_multi_head
from nvdash.readers.config import Keys

QUERY_HEADS = ("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads")
WIDTH = ("hidden_size", "n_embd", "d_model")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", "num_attention_groups")
HEAD_SIZE = ("head_dim", "attention_head_dim", "kv_channels", "head_size")


@dataclass(frozen=True, slots=True)
class Heads:
    """Key and value heads of one layer; the query heads may be unknown, memory does not need them."""

    kv_heads: int
    key_size: int
    value_size: int
    query_heads: int | None = None


def query_heads(keys: Keys) -> int | None:
    """The query heads, where the config says them."""
    return keys.count(*QUERY_HEADS)


def head_size(keys: Keys) -> int:
    """The key head size: a key of its own, else the width over the query heads."""
    stated = keys.count(*HEAD_SIZE)
    if stated is not None:
        return stated
    width, heads = keys.count(*WIDTH), query_heads(keys)
    if width is None or heads is None or width % heads:
        raise LayoutRefused(
            keys.prefix + "head_dim",
            "a head size, or a hidden_size that num_attention_heads divides",
            f"found hidden_size {width} and num_attention_heads {heads}",
        )
    return width // heads


def kv_heads(keys: Keys) -> int:
    """The KV heads: a key of its own, one where the config says multi-query, else as many as query heads if null."""
    multi_query = keys.flag("multi_query")
    if multi_query and not keys.flag("new_decoder_architecture"):
        return 1
    inner = keys.inner("attn_config")
    stated = inner.count("kv_n_heads") if inner else None
    stated = stated or keys.count(*(KV_HEADS if keys.flag("multi_query_attention") is not False else KV_HEADS[:2]))
    if stated is not None:
        return stated
    declared = any(name in keys.values for name in KV_HEADS)
    heads = query_heads(keys)
    if heads is not None and (declared or always_multi_head(keys.values)):
        return heads
    raise LayoutRefused(keys.prefix + KV_HEADS[0], "the number of KV heads", "found no such key")


def full_heads(keys: Keys) -> Heads:
    """Heads of the full-attention layers; Gemma 4 gives them a size and a number of their own."""
    own_size = keys.count("global_head_dim")
    own_heads = keys.count("num_global_key_value_heads")
    size = own_size or head_size(keys)
    value = size if own_size else keys.count("v_head_dim", low=0) or size
    return Heads(own_heads or kv_heads(keys), size, value, query_heads(keys))


def sliding_heads(keys: Keys) -> Heads:
    """Heads of the windowed layers: as the others, or with `swa_` keys of their own (MiMo-V2)."""
    other = keys.inner("attention_other_setting")
    if other is not None:
        size = other.need("head_dim")
        return Heads(other.need("num_attention_groups"), size, size, other.count("num_attention_heads"))
    size = keys.count("swa_head_dim") or head_size(keys)
    value = keys.count("swa_v_head_dim") or keys.count("v_head_dim", low=0) or size
    heads = keys.count("swa_num_key_value_heads") or kv_heads(keys)
    return Heads(heads, size, value, keys.count("swa_num_attention_heads") or query_heads(keys))


def per_layer_kv_heads(keys: Keys, layers: int) -> list[int] | None:
    """KV heads layer by layer where the config lists them."""
    for name in ("num_key_value_heads_per_layer", "num_kv_heads", "num_key_value_heads"):
        if isinstance(keys.values.get(name), list):
            listed = keys.items(name, (int,)) or []
            if len(listed) != layers or min(listed, default=0) < 0:
                raise LayoutRefused(keys.prefix + name, f"heads for each of {layers} layers", f"found {listed[:8]}")
            return listed
    return None
