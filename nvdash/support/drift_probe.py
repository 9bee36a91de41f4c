"""Asks an installed vLLM's own `validate_configuration` for a grid of cells; runs under that vLLM's Python.

Needs nothing of nvdash. Prints CSV: backend, compute_capability, kv_cache_dtype, head_size, valid, reasons.
A backend that cannot be imported here, or a call that fails, prints valid as an empty field with the error.
"""

import csv
import inspect
import sys
from collections.abc import Iterator, Sequence
from typing import Any, get_args

CAPABILITIES = ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1))
HEAD_SIZES = (64, 128, 256, 512)
LATENT_SIZES = (576,)
"""The latent record that MLA backends are asked with."""


def main() -> None:
    """One line per backend, capability, cache dtype and head size."""
    import vllm

    writer = csv.writer(sys.stdout)
    writer.writerow(
        ["backend", "compute_capability", "kv_cache_dtype", "head_size", "valid", "reasons", vllm.__version__]
    )
    for name, backend in backends():
        for major, minor in CAPABILITIES:
            for dtype in cache_dtypes():
                for head_size in LATENT_SIZES if backend.is_mla() else HEAD_SIZES:
                    valid, reasons = asked(backend, (major, minor), dtype, head_size)
                    writer.writerow([name, f"{major}.{minor}", dtype, head_size, valid, reasons])


def backends() -> Iterator[tuple[str, Any]]:
    """The registry's members whose class can be imported here."""
    try:
        from vllm.v1.attention.backends.registry import AttentionBackendEnum
    except ImportError:
        from vllm.attention.backends.registry import AttentionBackendEnum
    for member in AttentionBackendEnum:
        try:
            yield member.name, member.get_class()
        except Exception as error:  # a backend for another platform: said, not hidden
            print(f"{member.name}: {type(error).__name__}: {error}", file=sys.stderr)


def cache_dtypes() -> Sequence[str]:
    """The values of the cache dtype flag."""
    from vllm.config.cache import CacheDType

    return tuple(get_args(CacheDType))


def asked(backend: Any, capability: tuple[int, int], dtype: str, head_size: int) -> tuple[object, str]:
    """What the backend's own check says; only parameters of its signature are passed."""
    from vllm.platforms.interface import DeviceCapability

    given = {
        "head_size": head_size,
        "dtype": sys.modules["torch"].bfloat16,  # vLLM has imported it
        "kv_cache_dtype": dtype,
        "block_size": None,
        "use_mla": backend.is_mla(),
        "has_sink": False,
        "use_sparse": backend.is_sparse(),
        "use_mm_prefix": False,
        "device_capability": DeviceCapability(*capability),
        "attn_type": "decoder",
    }
    parameters = inspect.signature(backend.validate_configuration).parameters
    given |= {name: False for name in parameters if name not in given and name.startswith(("use_", "has_", "is_"))}
    try:
        reasons = backend.validate_configuration(**{key: value for key, value in given.items() if key in parameters})
    except Exception as error:  # the check itself failed: neither yes nor no
        return "", f"{type(error).__name__}: {error}"
    return int(not reasons), "; ".join(reasons)


if __name__ == "__main__":
    main()
