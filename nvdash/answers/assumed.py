"""Assumptions behind a verdict that the named model's own config contradicts."""

from collections.abc import Iterable

from nvdash.targets import Model

ASSUMED_KEYS = {
    "deepseek_mla_dimensions": {
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    },
    "sparse_indexer_topk_2048": {"index_topk": 2048},
}
"""What an assumption of axes.yaml says about keys of config.json."""


def contradicted(assumes: Iterable[str], model: Model | None) -> dict[str, str]:
    """Why each assumption that does not hold for this model does not; none is known to fail without a model."""
    if model is None:
        return {}
    config = model.config.get("text_config") or model.config
    said = {}
    for name in assumes:
        keys = ASSUMED_KEYS.get(name, {}).items()
        other = [f"{key} is {config[key]}, not {value}" for key, value in keys if config.get(key, value) != value]
        if other:
            said[name] = f"{name} does not hold for {model.name}: {', '.join(other)}; check the cited line"
    return said
