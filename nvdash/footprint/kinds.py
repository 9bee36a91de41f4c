"""Which layer of a model is of which kind, told from the keys the field uses for it.

Each reader looks for one spelling of the pattern; the first whose key is there decides. Two spellings that
disagree are a contradiction and refuse the config.
"""

from collections.abc import Callable

from nvdash.footprint.caches import LayoutRefused
from nvdash.readers.config import Keys

MAX_LAYERS = 2048
SLIDING_PATTERNS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
LAYER_WORDS = {
    "full_attention": "full",
    "attention": "full",
    "global_attention": "full",
    "deepseek_sparse_attention": "full",
    "sparse": "full",
    "full": "full",
    "dense": "full",
    "sliding_attention": "sliding",
    "sliding_window": "sliding",
    "local_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "state",
    "linear": "state",
    "mamba": "state",
    "mamba2": "state",
    "kda": "state",
    "conv": "state",
    "recurrent": "state",
    "hybrid": "both",
    "moe": "none",
    "mlp": "none",
    "-": "none",
}
"""Words of layer_types, layers_block_type and block_types; `both` keeps a state and keys and values."""

PATTERN_LETTERS = {"M": "state", "*": "full", "-": "none", "E": "none", "W": "sliding", "L": "sliding", "G": "full"}


def _refuse(keys: Keys, name: str, expected: str, found: object) -> LayoutRefused:
    return LayoutRefused(keys.prefix + name, expected, f"found {str(found)[:80]}")


def _worded(keys: Keys, name: str) -> list[str] | None:
    words = keys.items(name, (str,))
    if words is None:
        return None
    unknown = sorted(set(words) - set(LAYER_WORDS))
    if unknown:
        raise _refuse(keys, name, f"layer kinds among {', '.join(LAYER_WORDS)}", ", ".join(unknown))
    return [LAYER_WORDS[word] for word in words]


def _lettered(keys: Keys, name: str) -> list[str] | None:
    letters = keys.word(name)
    if letters is None:
        return None
    unknown = sorted(set(letters) - set(PATTERN_LETTERS))
    if unknown:
        raise _refuse(keys, name, f"letters among {' '.join(PATTERN_LETTERS)}", " ".join(unknown))
    return [PATTERN_LETTERS[letter] for letter in letters]


def _layer_types(keys: Keys, count: int | None) -> list[str] | None:
    return _worded(keys, "layer_types")


def _block_types(keys: Keys, count: int | None) -> list[str] | None:
    """`layers_block_type` per layer, or `block_types` that repeat over the layers."""
    listed = _worded(keys, "layers_block_type")
    if listed is not None:
        return listed
    repeated = _worded(keys, "block_types")
    if not repeated or count is None:
        return None
    return [repeated[layer % len(repeated)] for layer in range(count)]


def _override_pattern(keys: Keys, count: int | None) -> list[str] | None:
    return _lettered(keys, "hybrid_override_pattern")


def _numbered(keys: Keys, count: int | None) -> list[str] | None:
    """Lists of 0 and 1: `attn_type_list` (1 is full, 0 linear) and `hybrid_layer_pattern` (1 is sliding)."""
    for name, words in (("attn_type_list", ("state", "full")), ("hybrid_layer_pattern", ("full", "sliding"))):
        numbers = keys.items(name, (int,))
        if numbers is None:
            continue
        if set(numbers) - {0, 1}:
            raise _refuse(keys, name, "a list of 0 and 1", sorted(set(numbers)))
        return [words[number] for number in numbers]
    return None


def _linear_lists(keys: Keys, count: int | None) -> list[str] | None:
    """Kimi's `linear_attn_config`: layer numbers, from 1, of the linear and the full layers."""
    inner = keys.inner("linear_attn_config")
    if inner is None or count is None:
        return None
    full = set(inner.items("full_attn_layers", (int,)) or ())
    linear = set(inner.items("kda_layers", (int,)) or ())
    if full & linear or full | linear != set(range(1, count + 1)):
        raise _refuse(inner, "kda_layers", f"with full_attn_layers every layer from 1 to {count} once", sorted(linear))
    return ["full" if layer in full else "state" for layer in range(1, count + 1)]


def _listed_attention(keys: Keys, count: int | None) -> list[str] | None:
    """`attn_layer_indices` and `full_attn_idxs`: the attention layers among recurrent ones."""
    for name in ("attn_layer_indices", "full_attn_idxs"):
        indices = keys.items(name, (int,))
        if indices is None or count is None:
            continue
        if not set(indices) <= set(range(count)):
            raise _refuse(keys, name, f"layers from 0 to {count - 1}", indices)
        return ["full" if layer in indices else "state" for layer in range(count)]
    return None


def _full_interval(keys: Keys, count: int | None) -> list[str] | None:
    """`full_attention_interval`: every n-th layer is full, the others linear."""
    interval = keys.count("full_attention_interval")
    if interval is None or count is None:
        return None
    return ["state" if (layer + 1) % interval else "full" for layer in range(count)]


def _attention_period(keys: Keys, count: int | None) -> list[str] | None:
    """`attn_layer_period` and `attn_layer_offset`: attention every period, Mamba between."""
    period = keys.count("attn_layer_period")
    if period is None or count is None:
        return None
    offset = keys.need("attn_layer_offset", low=0)
    return ["full" if layer % period == offset else "state" for layer in range(count)]


def _no_rope(keys: Keys, count: int | None) -> list[str] | None:
    """Llama 4: layers with rotary positions attend within a chunk, every n-th layer attends to all."""
    interval = keys.count("no_rope_layer_interval")
    listed = keys.items("no_rope_layers", (int,))
    chunk = keys.count("attention_chunk_size") if interval or listed else None
    if chunk is None or count is None:
        return None
    if listed:
        return ["chunked" if rotary else "full" for rotary in listed]
    return ["chunked" if (layer + 1) % (interval or 1) else "full" for layer in range(count)]


def _sliding_pattern(keys: Keys, count: int | None) -> list[str] | None:
    """`sliding_window_pattern` and its other spellings: every n-th layer is full, or letters that repeat."""
    name = next((name for name in SLIDING_PATTERNS if keys.values.get(name)), SLIDING_PATTERNS[0])
    pattern = keys.raw(name)
    if not pattern or count is None or keys.count("sliding_window") is None:
        return None
    if isinstance(pattern, str):
        letters = _lettered(keys, name) or []
        return [letters[layer % len(letters)] for layer in range(count)]
    every = keys.need(name)
    return ["sliding" if (layer + 1) % every else "full" for layer in range(count)]


def _uniform(keys: Keys, count: int | None) -> list[str] | None:
    """No pattern: full attention, or one window for every layer where the config switches it on."""
    if count is None:
        return None
    window = keys.count("sliding_window")
    used = keys.flag("use_sliding_window")
    first_sliding = keys.count("max_window_layers", low=0)
    if window is None or used is False:
        return ["full"] * count
    if used and first_sliding is not None:
        return ["sliding" if layer >= first_sliding else "full" for layer in range(count)]
    return ["sliding"] * count


PATTERN_KEYS = (
    *("layer_types", "layers_block_type", "block_types", "hybrid_override_pattern", "attn_type_list"),
    *("hybrid_layer_pattern", "linear_attn_config", "attn_layer_indices", "attn_layer_period"),
    *("full_attn_idxs", "full_attention_interval", "no_rope_layers", "no_rope_layer_interval", *SLIDING_PATTERNS),
)
READERS: tuple[Callable[[Keys, int | None], list[str] | None], ...] = (
    *(_layer_types, _block_types, _override_pattern, _numbered, _linear_lists, _listed_attention),
    *(_attention_period, _full_interval, _no_rope, _sliding_pattern),
)


def layer_count(keys: Keys) -> int | None:
    """The number of layers where the config says it; a number no model has is refused."""
    names = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "decoder_layers")
    count = keys.count(*names)
    if count is not None and count > MAX_LAYERS:
        raise LayoutRefused(keys.prefix + names[0], f"at most {MAX_LAYERS} layers", f"found {count}")
    return count


def layer_kinds(keys: Keys) -> list[str]:
    """One kind per layer: full, sliding, chunked, state, both (state and full) or none."""
    count = layer_count(keys)
    stated = [kinds for read in READERS if (kinds := read(keys, count)) is not None]
    if any(kinds != stated[0] for kinds in stated):
        names = ", ".join(name for name in PATTERN_KEYS if keys.values.get(name) is not None)
        raise LayoutRefused(keys.prefix + "layer_types", "one pattern of layers", f"found several that differ: {names}")
    kinds = stated[0] if stated else _uniform(keys, count)
    if kinds is None or len(kinds) > MAX_LAYERS:
        raise LayoutRefused("num_hidden_layers", "the number of layers", "found no such key")
    if count is not None and len(kinds) != count:
        found = f"found {len(kinds)} in its pattern"
        raise LayoutRefused(keys.prefix + "num_hidden_layers", f"a kind for each of {count} layers", found)
    for name, kind in (("n_sliding", "sliding"), ("n_full", "full")):
        if keys.count(name, low=0) not in (None, kinds.count(kind)):
            raise LayoutRefused(keys.prefix + name, f"{kinds.count(kind)} {kind} layers", f"found {keys.values[name]}")
    return kinds
