"""Which keys of a config shape a cache, so that one nobody read can refuse the config."""

import re

from nvdash.footprint.caches import LayoutRefused
from nvdash.footprint.kinds import PATTERN_KEYS
from nvdash.readers.config import Keys

SHAPING = re.compile(
    r"(^|_)(window|windows|sliding|swa|chunk|sparse|blocksparse|index|indexer|lora_rank|layer_types|block_types?|"
    r"block_configs|pattern|attn_type|attn_layer|attn_idxs|attention_layers?|full_attention|layer_group|use_cla|"
    r"linear_(num|key|value|attn|conv)|mamba_(d|n|num|head)|n_mamba|ssm|state_size|conv_L|conv_kernel|compress|"
    r"compress_ratios|shared_layers|kv_heads|key_value_heads|global_head|multi_query|head_dim|short_conv|recurrent)"
    r"(_|$|s$)"
)
"""Keys by whose names a cache may be shaped."""
STATE_DIMS = re.compile(r"^(mamba_|ssm_|n_mamba|num_mamba|linear_(num|key|value|conv)|conv_|short_conv|state_size)")
"""Keys that only shape recurrent layers; without such layers in a stated pattern they mean nothing."""
HARMLESS = re.compile(
    r"^(max_window_layers|index_(n_heads|topk_(freq|pattern)|skip|share).*|indexer_rope.*|(q|o)_lora_rank|qk_.*head_dim|v_head_dim|"
    r"head_dim|num_key_value_heads|num_kv_heads|.*rope.*|mtp_.*|attention_chunk_size|sliding_window(_size|_pattern)?|"
    r"use_sliding_window|multi_query|.*decoder_sparse_step|.*_bias|mamba_(proj|hidden|conv_bias).*|mamba_dt_.*|"
    r"mlp_layer_types|no_rope_.*|.*_token_index|kv_lora_rank|ignore_index|sparse_(topk|block).*|moe_layer_.*|"
    r"activation_sparsity_pattern|router_.*|chunk_size.*|mamba_chunk_size|.*window_attention.*|fullatt_block_indexes)$"
)
"""Keys that match `SHAPING` by name and change nothing, or only beside a key that is always read."""


def refuse_unread(keys: Keys) -> None:
    """Refuse a config with a key that shapes caches and that nothing read."""
    for name, value in keys.values.items():
        if value in (None, False, 0, "", [], {}) or name in keys.read or HARMLESS.match(name):
            continue
        if STATE_DIMS.match(name) and any(keys.values.get(key) is not None for key in PATTERN_KEYS):
            continue
        if SHAPING.search(name):
            expected = "a key whose effect on the cache is known"
            raise LayoutRefused(name, expected, f"found {str(value)[:60]}, which no layout rule reads")
