"""How long a model's context is by its own config, as vLLM derives it when nobody asks for a length.

The shortest of the lengths a config states; stretched by its rotary scaling unless that one states the stretched length
already (vLLM 0.33.0 config/model.py, `_get_and_verify_max_len`).
"""

from nvdash.readers.config import Keys

LENGTHS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
STRETCHED = ("su", "longrope", "llama3", "mrope", "default", "proportional")
"""Rotary types whose stated length is already the long one, or that do not stretch."""


def max_position(keys: Keys) -> int | None:
    """Tokens of the longest context, None where the config does not say."""
    stated = [length for name in LENGTHS if (length := keys.count(name)) is not None]
    if not stated:
        return None
    return _stretched(keys, min(stated))


def _stretched(keys: Keys, length: int) -> int:
    scaling = keys.inner("rope_scaling") or keys.inner("rope_parameters")
    kind = scaling.word("rope_type", "type") if scaling else None
    factor = scaling.values.get("factor") if scaling else None
    if scaling is None or kind is None or kind in STRETCHED or "gemma3" in str(keys.values.get("model_type")):
        return length
    if not isinstance(factor, (int, float)) or isinstance(factor, bool) or not 1 <= factor <= 1_000_000:
        return length
    base = scaling.count("original_max_position_embeddings") if kind == "yarn" else None
    return int((base or length) * factor)
