"""Which component a stored tensor belongs to, how ranks share it, and what that makes of the weights.

Told from names as the model classes write them; the first rule that matches decides.
"""

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, Protocol

from nvdash.footprint.layers import layout
from nvdash.footprint.parameters import Part
from nvdash.footprint.request import CacheRequest
from nvdash.footprint.weights import Weights, stages_of, weights_of

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block)\.(\d{1,5})\.")
SCALE = re.compile(
    r"(?:\.|_)(?:weight_scale(?:_inv|_2)?|input_scale|scales?|qzeros|g_idx|weight_zero_point|weight_shape|"
    r"(?:weight|input)_global_scale|[kvq]_scale|blocks_scale)$"
)
COMPONENTS = tuple(
    (component, re.compile(pattern))
    for component, pattern in (
        ("vision", r"(?:^|\.)(?:visual|vision\w*|audio\w*|\w+_projector|embed_(?:vision|audio))\."),
        ("drafter", r"(?:^|\.)(?:mtp|mtp_layers|nextn|eagle)\."),
        ("lm_head", r"^(?:\w+\.)*(?:lm_head|embed_out)\.\w+$|^(?:model\.)?(?:output|head)\.weight$"),
        ("embedding", r"(?:^|\.)(?:embed_(?:tokens\w*|positions)|\w+_embeddings|wte|wpe|embed)\.\w+$"),
        ("norms", r"(?:norm\w*|ln_\w+|layernorm\w*)\.(?:weight|bias)$"),
        ("mlp", r"\.shared_experts?\."),
        ("router", r"\.(?:gate|router|shared_expert_gate)(?:\.\w+)*$|e_score_correction_bias$"),
        ("experts", r"\.experts(?:\.|_)"),
        ("state", r"\.(?:linear_attn|mamba|delta_net|ssm)\.|\.mixer\.(?:in_proj|out_proj|conv1d|A_log|D$|dt_bias)"),
        ("attention", r"\.(?:self_attn|attn|attention|self_attention|mixer)\."),
        ("mlp", r"\.(?:mlp|feed_forward|ffn|mixer)\.|\.(?:w[123]|fc[12]|dense_\w+)\."),
    )
)
WHOLE = re.compile(r"\.(?:q_a_proj|kv_a_proj_with_mqa|kv_a_proj|fused_qkv_a_proj|indexer|wq_a|wkv_a|wkv)\b")
"""Projections into a shared latent, and indexers: every rank holds all of them."""
GROUPED = re.compile(r"\.(?:k_proj|v_proj|wk|wv)\.")
PACKED_VALUES = {"U8": 2, "I32": 8}
"""Weights in one element of a packed tensor: two FP4 in a byte, eight 4-bit integers in a word."""


class Stored(Protocol):
    """One stored tensor, as a reader lists it."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def stored_bytes(self) -> int: ...


def weights_of_tensors(
    tensors: Iterable[Stored], config: Mapping[str, Any], request: CacheRequest, with_drafter: bool = False
) -> Weights:
    """Weights on the fullest rank, from listed tensors; a drafter's count only when one is asked for."""
    layers = layout(config)
    kv_heads = {cache.layer: cache.kv_heads for cache in layers.caches if cache.kind != "state"}
    sized = [(part_of(tensor, layers.num_layers, kv_heads), tensor.stored_bytes) for tensor in tensors]
    held = [(part, size) for part, size in sized if with_drafter or part.component != "drafter"]
    return weights_of(held, stages_of(layers, request), request.tp, "checkpoint")


def part_of(tensor: Stored, num_layers: int, kv_heads: Mapping[int, int]) -> Part:
    """The part that one tensor is."""
    found = LAYER.search(tensor.name)
    layer = int(found[1]) if found else None
    component = component_of(tensor.name)
    if component == "vision":
        layer = None
    elif layer is not None and layer >= num_layers:
        component = "drafter"
    whole = len(tensor.shape) < 2 or component in ("norms", "router") or bool(WHOLE.search(tensor.name))
    split = "none" if whole else "kv" if GROUPED.search(tensor.name) and component == "attention" else "tp"
    heads = kv_heads.get(layer, 0) if layer is not None else 0
    if SCALE.search(tensor.name) and component != "drafter":
        component = "scales"
    return Part(component, tensor.name, values_of(tensor, component), layer, split, heads)


def component_of(name: str) -> str:
    """The component of a tensor name, scales counted with the layer they scale."""
    base = SCALE.sub(".weight", name)
    return next((component for component, pattern in COMPONENTS if pattern.search(base)), "other")


def values_of(tensor: Stored, component: str) -> int:
    """Weights that a tensor holds: packed ones unpacked, scales none."""
    if component == "scales":
        return 0
    return prod(tensor.shape) * PACKED_VALUES.get(tensor.dtype, 1)
