"""Small source trees that imitate the shapes of vLLM releases; every line of them is ours."""

from pathlib import Path
from textwrap import dedent

BASE = """
    from vllm.platforms.interface import DeviceCapability

    class AttentionBackend:
        supported_dtypes = ["anything"]
        supported_kv_cache_dtypes = ["auto", "bfloat16"]

        @staticmethod
        def get_name():
            raise NotImplementedError

        @staticmethod
        def get_impl_cls():
            raise NotImplementedError

        @staticmethod
        def get_builder_cls():
            raise NotImplementedError

        @classmethod
        def get_supported_head_sizes(cls):
            return []

        @classmethod
        def supports_head_size(cls, head_size):
            sizes = cls.get_supported_head_sizes()
            return not sizes or head_size in sizes

        @classmethod
        def supports_kv_cache_dtype(cls, kv_cache_dtype):
            return kv_cache_dtype in cls.supported_kv_cache_dtypes

        @classmethod
        def is_mla(cls):
            return False

        @classmethod
        def is_sparse(cls):
            return False

        @classmethod
        def supports_sink(cls):
            return False

        @classmethod
        def supports_dcp(cls):
            return True

        @classmethod
        def supports_compute_capability(cls, capability):
            return True

        @classmethod
        def supports_combination(cls, head_size, kv_cache_dtype, has_sink, device_capability):
            return None

        @classmethod
        def validate_configuration(
            cls, head_size, dtype, kv_cache_dtype, use_mla, has_sink, use_sparse, device_capability, use_dcp=False
        ):
            invalid_reasons = []
            if not cls.supports_head_size(head_size):
                invalid_reasons.append("head_size not supported")
            if not cls.supports_kv_cache_dtype(kv_cache_dtype):
                invalid_reasons.append("kv_cache_dtype not supported")
            if use_mla != cls.is_mla():
                invalid_reasons.append("MLA not supported" if use_mla else "non-MLA not supported")
            if use_sparse != cls.is_sparse():
                invalid_reasons.append("sparse not supported" if use_sparse else "non-sparse not supported")
            if has_sink and not cls.supports_sink():
                invalid_reasons.append("attention sinks not supported")
            if use_dcp and not cls.supports_dcp():
                invalid_reasons.append("DCP not supported")
            if not cls.supports_compute_capability(device_capability):
                invalid_reasons.append("compute capability not supported")
            reason = cls.supports_combination(head_size, kv_cache_dtype, has_sink, device_capability)
            if reason is not None:
                invalid_reasons.append(reason)
            return invalid_reasons
"""

FAST = """
    from {base} import AttentionBackend
    from vllm.platforms import current_platform
    from vllm.platforms.interface import DeviceCapability
    from vllm.distributed import get_dcp_group

    def _on_small_cards():
        return any(current_platform.is_device_capability_family(f) for f in (80, 120))

    class FastBackend(AttentionBackend):
        supported_kv_cache_dtypes = ["auto", "bfloat16", "fp8"]

        @staticmethod
        def get_builder_cls():
            return FastBuilder

        @classmethod
        def get_supported_head_sizes(cls):
            return [64, 128, 256]

        @classmethod
        def supports_sink(cls):
            return current_platform.is_device_capability_family(100)

        @classmethod
        def supports_kv_cache_dtype(cls, kv_cache_dtype):
            if kv_cache_dtype == "nvfp4":
                return _on_small_cards() or current_platform.is_device_capability_family(100)
            return super().supports_kv_cache_dtype(kv_cache_dtype)

        @classmethod
        def supports_compute_capability(cls, capability):
            return capability >= DeviceCapability(8, 0)

        @classmethod
        def supports_combination(cls, head_size, kv_cache_dtype, has_sink, device_capability):
            if kv_cache_dtype == "nvfp4" and device_capability.major in (8, 12) and head_size == 64:
                return f"NVFP4 misreads head size 64, got {head_size}"
            return None

    class FastBuilder:
        def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
            self.config = vllm_config
            self.graphs = None
            if vllm_config.compilation_config.mystery:
                self.graphs = 1
            if vllm_config.cache_config.cache_dtype == "nvfp4" and _on_small_cards():
                if get_dcp_group().world_size > 1:
                    raise NotImplementedError("The DCP wrapper cannot read NVFP4 scales. Use one rank.")
"""

SLOW = """
    from {base} import AttentionBackend

    class SlowBackend(AttentionBackend):
        @staticmethod
        def get_impl_cls():
            return SlowImpl

        @classmethod
        def supports_head_size(cls, head_size):
            return head_size % 8 == 0 and head_size <= 256

        @classmethod
        def supports_dcp(cls):
            return False

    class SlowImpl:
        can_return_lse_for_decode = False
"""

LATENT = """
    from {base} import AttentionBackend
    from vllm.config import get_current_vllm_config

    class LatentBackend(AttentionBackend):
        @classmethod
        def get_supported_head_sizes(cls):
            return [576]

        @classmethod
        def is_mla(cls):
            return True

        @classmethod
        def supports_combination(cls, head_size, kv_cache_dtype, has_sink, device_capability):
            if get_current_vllm_config().model_config.hf_text_config.secret_size not in (1, 2):
                return "needs a secret size of 1 or 2"
            return None
"""

PLATFORM = """
    from functools import cache
    from {registry} import AttentionBackendEnum
    from .interface import DeviceCapability

    @cache
    def _get_backend_priorities(use_mla, device_capability, num_heads=None):
        if use_mla:
            return [AttentionBackendEnum.LATENT]
        if device_capability.major == 10:
            return [AttentionBackendEnum.FAST, AttentionBackendEnum.SLOW]
        return [AttentionBackendEnum.SLOW, AttentionBackendEnum.FAST]

    class CudaPlatformBase:
        @classmethod
        def get_device_capability(cls):
            raise NotImplementedError

        @classmethod
        def is_device_capability_family(cls, family):
            return cls.get_device_capability().to_int() // 10 == family // 10
"""

INTERFACE = """
    from typing import NamedTuple

    class DeviceCapability(NamedTuple):
        major: int
        minor: int
"""

REGISTRY = """
    from enum import Enum

    class AttentionBackendEnum(Enum):
        FAST = "{backends}.fast.FastBackend"
        SLOW = "{backends}.slow.SlowBackend"
        LATENT = (
            "{backends}.latent.LatentBackend"
        )
        TORCH_SDPA = ""
        CUSTOM = None
"""

CACHE = """
    from typing import Literal

    CacheDType = Literal["auto", "bfloat16", "fp8", "nvfp4"]

    class CacheConfig:
        gpu_memory_utilization: float = Field(default=0.92, gt=0, le=1)
"""

CONFIG = """
    class VllmConfig:
        @model_validator(mode="after")
        def validate_cache_with_mla(self):
            if self.cache_config.cache_dtype == "nvfp4" and self.model_config.use_mla:
                raise ValueError("no NVFP4 cache with MLA")
            return self
"""

PLANNING = """
    def report(pools, tokens, length, factor):
        if max_num_layers < min_num_layers * 1.5:
            pass
        logger.info_once(
            "%s KV cache size: %s tokens, "
            "Maximum concurrency for %s tokens per request: %.2fx",
            pools, tokens, length, factor,
        )
"""

RUNNER = """
    def check_attention_cp_compatibility(layer_impl):
        assert layer_impl.need_to_return_lse_for_decode, "no log-sum-exp"
"""

NEW = {
    "base": "vllm.v1.attention.backend",
    "registry": "vllm.v1.attention.backends.registry",
    "backends": "vllm.v1.attention.backends",
}
MIDDLE = {
    "base": "vllm.attention.backends.abstract",
    "registry": "vllm.attention.backends.registry",
    "backends": "vllm.v1.attention.backends",
}
LEGACY_PLATFORM = """
    import torch

    class CudaPlatformBase:
        @classmethod
        def get_device_capability(cls):
            raise NotImplementedError

        @classmethod
        def is_device_capability(cls, value):
            return cls.get_device_capability().to_int() == value

        @classmethod
        def get_attn_backend_cls(cls, selected_backend, head_size, dtype, kv_cache_dtype, block_size, use_v1, use_mla):
            if selected_backend:
                raise ValueError("not asked here")
            FAST = "vllm.v1.attention.backends.fast.FastBackend"
            if cls.is_device_capability(100):
                from vllm.attention.selector import supports_head_size

                if supports_head_size(FAST, head_size):
                    return FAST
            return "vllm.v1.attention.backends.slow.SlowBackend"
"""


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files (dedented) below a folder, with the packages they need."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root


def tree(root: Path, shape: dict[str, str] = NEW, **changes: str) -> Path:
    """A release with a registry; `changes` replaces whole files by their short name (fast, slow, cache, …)."""
    source = {
        "base": BASE,
        "fast": FAST,
        "slow": SLOW,
        "latent": LATENT,
        "platform": PLATFORM,
        "registry": REGISTRY,
        "cache": CACHE,
        "config": CONFIG,
        "planning": PLANNING,
        "interface": INTERFACE,
        "runner": RUNNER,
        **changes,
    }
    places = {name: shape[name].replace(".", "/") + ".py" for name in ("base", "registry")}
    folder = shape["backends"].replace(".", "/")
    places |= {name: f"{folder}/{name}.py" for name in ("fast", "slow", "latent")}
    places |= {
        "platform": "vllm/platforms/cuda.py",
        "interface": "vllm/platforms/interface.py",
        "cache": "vllm/config/cache.py",
        "config": "vllm/config/vllm.py",
        "planning": "vllm/v1/core/kv_cache_utils.py",
        "runner": "vllm/v1/worker/cp_utils.py",
    }
    files = {places[name]: filled(text, shape) for name, text in source.items()}
    files["vllm/__init__.py"] = ""
    files["requirements/cuda.txt"] = "torch\nflashinfer-python==0.7.0.post1\n"
    return write(root, files)


def filled(text: str, shape: dict[str, str]) -> str:
    for name, value in shape.items():
        text = text.replace("{" + name + "}", value)
    return text


def legacy_tree(root: Path) -> Path:
    """A release from before the registry."""
    named = '\n        @staticmethod\n        def get_name():\n            return "{}_VLLM_V1"\n'
    files = {
        "vllm/__init__.py": "",
        "vllm/platforms/cuda.py": LEGACY_PLATFORM,
        "vllm/config.py": CACHE + CONFIG,
        "vllm/v1/attention/backends/fast.py": "\n    class FastBackend:" + named.format("FAST"),
        "vllm/v1/attention/backends/slow.py": "\n    class SlowBackend:" + named.format("SLOW"),
    }
    return write(root, files)
