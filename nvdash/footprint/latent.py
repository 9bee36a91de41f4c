"""Latent (MLA) attention: one record per token, index keys of sparse models, DeepSeek-V4's compressed caches."""

from collections.abc import Iterator
from dataclasses import replace

from nvdash.footprint.caches import Cache
from nvdash.footprint.class_defaults import ATTENTION_PER_LAYER, model_type
from nvdash.footprint.kinds import layer_count, layer_kinds
from nvdash.footprint.shapes import query_heads
from nvdash.footprint.states import state_of
from nvdash.readers.config import Keys


def latent_caches(keys: Keys) -> Iterator[Cache]:
    """One latent record per token and layer; sparse attention adds an index key; other layers keep a state."""
    rank, rope = keys.need("kv_lora_rank"), keys.need("qk_rope_head_dim", low=0)
    kinds = layer_kinds(keys)
    indexed = _latent_index(keys, len(kinds))
    for layer, kind in enumerate(kinds):
        if kind == "state":
            yield Cache(layer, "state", state=state_of(keys))
        elif kind != "none":
            for part in range(ATTENTION_PER_LAYER.get(model_type(keys.values), 1)):
                yield Cache(layer, "mla", 1, rank, rope, part=part, query_heads=query_heads(keys))
        if layer in indexed:
            yield index_key(keys, layer)


def index_key(keys: Keys, layer: int) -> Cache:
    """An FP8 index key with one FP32 scale per 128 values."""
    width = keys.need("index_head_dim")
    return Cache(layer, "index", 1, width, fixed_bytes=width + -(-width // 128) * 4)


def _latent_index(keys: Keys, layers: int) -> set[int]:
    """The layers that keep index keys: all of a sparse model, or those that do not share another's selection."""
    if keys.count("index_topk") is None:
        return set()
    types = keys.items("indexer_types", (str,))
    if types is not None:
        if len(types) != layers or set(types) - {"full", "shared"}:
            raise keys.fail("indexer_types", f"full or shared for each of {layers} layers", types)
        return {layer for layer, word in enumerate(types) if word == "full"}
    letters = keys.word("index_topk_pattern")
    if letters is not None:
        return {layer for layer in range(layers) if letters[layer : layer + 1] != "S"}
    every, offset = keys.count("index_topk_freq") or 1, keys.count("index_skip_topk_offset", low=0)
    first = 2 if offset is None else offset
    return {layer for layer in range(layers) if max(layer - first + 1, 0) % every == 0}


def compressed_caches(keys: Keys) -> Iterator[Cache]:
    """DeepSeek-V4: every layer by its ratio, as far as the model's own layers go."""
    ratios, layers = keys.items("compress_ratios", (int,)) or [], layer_count(keys) or 0
    if len(ratios) < layers or layers == 0 or set(ratios) - {0, 1, 4, 128}:
        raise keys.fail("compress_ratios", f"0, 1, 4 or 128 for each of {layers} layers", ratios[:8])
    for layer, ratio in enumerate(ratios[:layers]):
        yield from compressed_layer(keys, layer, ratio)


def compressed_layer(keys: Keys, layer: int, ratio: int) -> Iterator[Cache]:
    """A windowed latent cache; with a ratio also the compressed one, its index keys and what is not compressed yet."""
    size, rope, heads = keys.need("head_dim"), keys.need("qk_rope_head_dim"), query_heads(keys)
    if rope >= size:
        raise keys.fail("qk_rope_head_dim", f"less than head_dim {size}", rope)
    window = keys.need("sliding_window")
    yield Cache(layer, "mla_sliding", 1, size - rope, rope, window, block=64, query_heads=heads)
    if ratio <= 1:
        return
    yield Cache(layer, "mla", 1, size - rope, rope, ratio=ratio, query_heads=heads)
    yield _compressor(layer, size, ratio)
    if ratio == 4 and keys.count("index_topk") is not None:
        yield replace(index_key(keys, layer), ratio=ratio)
        yield replace(_compressor(layer, keys.need("index_head_dim"), ratio), part=1)


def _compressor(layer: int, size: int, ratio: int) -> Cache:
    """FP32 inputs and scores of the tokens still to be compressed; ratio 4 keeps two overlapping groups."""
    overlap = 2 if ratio == 4 else 1
    width = 2 * overlap * size
    block = 4 if ratio == 4 else 8
    return Cache(layer, "compressor", 1, width, window=overlap * ratio, block=block, fixed_bytes=4 * width)
