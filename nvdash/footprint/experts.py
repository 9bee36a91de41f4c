"""The feed-forward weights of one layer: one gated MLP, or experts with a router and shared ones."""

from collections.abc import Iterator

from nvdash.footprint.class_defaults import model_type
from nvdash.readers.config import Keys

Amount = tuple[str, str, int, str]
"""Component, module name inside the layer, values, split."""
UNGATED_TYPES = frozenset(
    {"falcon", "opt", "gpt2", "gpt_neox", "gptj", "bloom", "mpt", "phi", "nemotron_h", "whisper", "gpt_bigcode"}
)
"""Classes with two feed-forward matrices instead of three."""
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "num_experts_per_layer")
EXPERT_LETTER, MLP_LETTER = "E", "-"


def mlp_parts(keys: Keys, width: int, layer: int) -> Iterator[Amount]:
    """The feed-forward parts of one layer, experts and router apart."""
    pattern = _pattern(keys)
    if pattern is not None:
        if pattern[layer] == EXPERT_LETTER:
            yield from _experts(keys, width)
        elif pattern[layer] == MLP_LETTER:
            yield "mlp", "mlp", _matrices(keys) * width * keys.need("intermediate_size"), "tp"
        return
    if keys.raw("block_configs"):
        yield "mlp", "mlp", 3 * width * _block_width(keys, width, layer), "tp"
        return
    sparse = _is_sparse(keys, layer)
    if sparse:
        yield from _experts(keys, width)
    if not sparse or keys.flag("enable_moe_block"):
        yield "mlp", "mlp", _matrices(keys) * width * _dense_width(keys, width, layer), "tp"


def _pattern(keys: Keys) -> list[str] | None:
    """Nemotron-H: a layer is a mixer or a feed-forward, told by a letter or a word per layer."""
    letters = keys.word("hybrid_override_pattern")
    if letters is not None:
        return list(letters)
    words = keys.items("layers_block_type", (str,))
    if words is None or not {"moe", "mlp"} & set(words):
        return None
    return [{"moe": EXPERT_LETTER, "mlp": MLP_LETTER}.get(word, "*") for word in words]


def _block_width(keys: Keys, width: int, layer: int) -> int:
    """Nemotron-NAS: each block states a multiple of the width, rounded up to 256 like the class does."""
    part = Keys(keys.raw("block_configs")[layer], f"block_configs[{layer}].").inner("ffn")
    if part is None or part.flag("no_op"):
        return 0
    multiple = part.raw("ffn_mult")
    if not isinstance(multiple, int | float):
        raise part.fail("ffn_mult", "a number", multiple)
    return -(-int(2 * multiple * width / 3) // 256) * 256


def _matrices(keys: Keys) -> int:
    return 2 if model_type(keys.values) in UNGATED_TYPES else 3


def _dense_width(keys: Keys, width: int, layer: int) -> int:
    listed = keys.raw("intermediate_size")
    if isinstance(listed, list):
        return int((keys.items("intermediate_size", (int,)) or [0])[layer])
    shared = keys.count("intermediate_size_mlp", "shared_intermediate_size", "dense_intermediate_size")
    names = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "decoder_ffn_dim")
    return shared or keys.need(*names, hint="the feed-forward width decides most of the weights")


def _is_sparse(keys: Keys, layer: int) -> bool:
    """Whether this layer has experts, by whichever key the model states it."""
    if not keys.count(*EXPERTS, low=0):
        return False
    dense_first = keys.count("first_k_dense_replace", low=0) or 0
    if layer < dense_first or layer in (keys.items("mlp_only_layers", (int,)) or ()):
        return False
    types = keys.items("mlp_layer_types", (str,))
    if types is not None:
        return bool(types[layer] != "dense")
    frequency = keys.raw("moe_layer_freq")
    if isinstance(frequency, list):
        return bool(frequency[layer])
    every = keys.count("decoder_sparse_step") or keys.count("interleave_moe_layer_step") or keys.count("moe_layer_freq")
    return (layer + 1) % every == 0 if every and every > 1 else True


def _experts(keys: Keys, width: int) -> Iterator[Amount]:
    count = keys.need(*EXPERTS)
    hidden = keys.need("moe_intermediate_size", "intermediate_size", "ffn_hidden_size")
    latent = keys.count("moe_latent_size", "routed_expert_hidden_size")
    matrices = _matrices(keys)
    yield "experts", "mlp.experts", matrices * count * (latent or width) * hidden, "tp"
    yield "router", "mlp.gate", width * count, "none"
    if latent:
        yield "mlp", "mlp.latent_proj", 2 * width * latent, "none"
    yield "mlp", "mlp.shared_experts", matrices * width * _shared_width(keys, hidden), "tp"
    if model_type(keys.values) == "gpt_oss":
        yield "router", "mlp.experts.bias", count * (2 * hidden + width), "tp"


def _shared_width(keys: Keys, hidden: int) -> int:
    """The width of the experts that every token passes: stated, or a number of routed ones."""
    names = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim")
    stated = keys.count(*names, low=0)
    shared = keys.count("n_shared_experts", "num_shared_experts", low=0)
    if stated is not None:
        return stated * (shared or 1)
    llama4 = model_type(keys.values) in ("llama4", "llama4_text")
    return hidden if llama4 else (shared or 0) * hidden
