"""What a recurrent layer keeps per request, read from the keys of its family.

The shapes are those of vLLM 0.33.0 model_executor/layers/mamba/mamba_utils.py (MambaStateShapeCalculator); the type of
the recurrent part is a config key of its own in most families, the model's type otherwise.
"""

from nvdash.footprint.caches import LayoutRefused, State
from nvdash.footprint.class_defaults import model_type
from nvdash.readers.config import Keys

ENGINE_TYPED = ("nemotron_h",)
"""Classes whose recurrent type, when the config is silent, is the engine's choice and has changed."""
STATE_TYPES = {"auto": "model", "float32": "float32", "float16": "float16", "bfloat16": "bfloat16"}


def _head_type(keys: Keys, default: str = "model") -> str:
    word = keys.word("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    if word is None:
        return "unset" if model_type(keys.values) in ENGINE_TYPED else default
    if word.removeprefix("torch.") not in STATE_TYPES:
        raise keys.fail("mamba_ssm_cache_dtype", f"one of {', '.join(STATE_TYPES)}", word)
    return STATE_TYPES[word.removeprefix("torch.")]


def _gated_delta_net(keys: Keys) -> State:
    key_heads, value_heads = keys.need("linear_num_key_heads"), keys.need("linear_num_value_heads")
    key_size, value_size = keys.need("linear_key_head_dim"), keys.need("linear_value_head_dim")
    return State(
        "gdn",
        channels=2 * key_heads * key_size + value_heads * value_size,
        steps=keys.need("linear_conv_kernel_dim") - 1,
        heads=value_heads,
        head_values=key_size * value_size,
        head_dtype=_head_type(keys),
    )


def _delta_attention(keys: Keys) -> State:
    """Kimi delta attention: three convolutions of the projection width, FP32 matrices unless a key says otherwise."""
    inner = keys.inner("linear_attn_config")
    if inner is None:
        raise LayoutRefused("linear_attn_config", "the shape of the linear layers", "found no such key")
    heads, size = inner.need("num_heads"), inner.need("head_dim")
    return State(
        "kda",
        channels=3 * heads * size,
        steps=inner.need("short_conv_kernel_size") - 1,
        heads=heads,
        head_values=size * size,
        head_dtype=_head_type(keys, "float32"),
    )


def _mamba2(keys: Keys) -> State:
    heads = keys.need("mamba_n_heads", "mamba_num_heads", "num_mamba_heads", "n_mamba_heads", "num_heads")
    size = _mamba2_head(keys, heads)
    state = keys.need("mamba_d_state", "ssm_state_size", "state_size")
    groups = keys.need("mamba_n_groups", "n_groups", "mamba_ngroups")
    return State(
        "mamba2",
        channels=heads * size,
        groups=groups,
        group_channels=2 * state,
        steps=keys.need("mamba_d_conv", "conv_kernel") - 1,
        heads=heads,
        head_values=size * state,
        head_dtype=_head_type(keys),
    )


def _mamba2_head(keys: Keys, heads: int) -> int:
    """The head size: stated, or `auto` for the expanded width over the heads."""
    if keys.values.get("mamba_d_head") == "auto":
        return keys.need("mamba_expand") * keys.need("hidden_size") // heads
    return keys.need("mamba_d_head", "mamba_head_dim", "mamba_headdim", "head_dim")


def _mamba1(keys: Keys) -> State:
    inner = keys.count("mamba_intermediate_size", "mamba_d_inner")
    if inner is None and keys.values.get("model_type") in ("mamba", "falcon_mamba"):
        inner = keys.count("intermediate_size")
    inner = inner or keys.need("mamba_expand", "expand") * keys.need("hidden_size")
    state = keys.need("mamba_d_state", "state_size")
    return State(
        "mamba1",
        channels=inner,
        steps=keys.need("mamba_d_conv", "conv_kernel") - 1,
        heads=inner,
        head_values=state,
        head_dtype=_head_type(keys),
    )


def _short_conv(keys: Keys) -> State:
    width = keys.count("conv_dim") or keys.need("hidden_size")
    return State("short_conv", channels=width, steps=keys.need("conv_L_cache") - 1)


def _lightning(keys: Keys) -> State:
    """MiniMax-Text linear attention: one matrix per head, no convolution."""
    heads = keys.need("num_attention_heads")
    size = keys.count("head_dim") or keys.need("hidden_size") // heads
    return State("lightning", heads=heads, head_values=size * size)


FAMILIES = (
    ("linear_num_value_heads", _gated_delta_net),
    ("linear_attn_config", _delta_attention),
    ("conv_L_cache", _short_conv),
    ("mamba_n_heads", _mamba2),
    ("mamba_num_heads", _mamba2),
    ("num_mamba_heads", _mamba2),
    ("n_mamba_heads", _mamba2),
    ("mamba_d_state", _mamba1),
    ("num_heads", _mamba2),
    ("state_size", _mamba1),
    ("attn_type_list", _lightning),
)
"""The key that tells a family of recurrent layers, in the order they are tried."""


def state_of(keys: Keys) -> State:
    """The state of the recurrent layers; a config that names such layers but no shape is refused."""
    for name, read in FAMILIES:
        if keys.values.get(name) is not None:
            return read(keys)
    known = ", ".join(name for name, _ in FAMILIES)
    raise LayoutRefused(keys.prefix + "layer_types", f"a shape for the recurrent layers ({known})", "found none")
