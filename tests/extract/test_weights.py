"""The weights stage, the CMake lists, the defaults and the meaning of `auto`, on small releases of our own."""

import pytest

from nvdash.extract import weights
from nvdash.extract.compiled_ops import fp4_built
from nvdash.extract.context import ARCHITECTURES
from nvdash.extract.defaults import compressed_tensors, named, resolved
from nvdash.extract.heads import WIDE, accepting, refusing
from nvdash.extract.selector import Selector
from nvdash.extract.source import Tree
from nvdash.extract.statements import Reading, thawed
from nvdash.extract.values import Unknown
from tests.extract import toy

KERNELS = """
    from vllm.platforms import current_platform
    from vllm.platforms.interface import PlatformEnum
    from vllm.extras import has_gadget

    class FlashInferNewNvFp4LinearKernel:
        @classmethod
        def is_supported(cls, compute_capability=None):
            if current_platform.is_device_capability_family(100):
                return True, None
            return False, "SM10x only"

    class CutlassNvFp4LinearKernel:
        @classmethod
        def is_supported(cls, compute_capability=None):
            return cutlass_scaled_mm_supports_fp4(0), None

    class GadgetNvFp4LinearKernel:
        @classmethod
        def is_supported(cls, compute_capability=None):
            return (has_gadget() and current_platform.is_device_capability_family(90)), None

    class MarlinNvFp4LinearKernel:
        @classmethod
        def is_supported(cls, compute_capability=None):
            return True, None

    _POSSIBLE_NVFP4_KERNELS = {
        PlatformEnum.CUDA: [
            FlashInferNewNvFp4LinearKernel, CutlassNvFp4LinearKernel, GadgetNvFp4LinearKernel, MarlinNvFp4LinearKernel,
        ],
        PlatformEnum.ROCM: [],
    }
"""
INTERFACE = (
    toy.INTERFACE
    + """
    import enum

    class PlatformEnum(enum.Enum):
        CUDA = enum.auto()
        ROCM = enum.auto()
"""
)
METHODS = """
    def get_quantization_config(quantization):
        from .fp4 import Fp4Config
        method_to_config = {"modelopt_fp4": Fp4Config}
        return method_to_config[quantization]
"""
FP4 = """
    class Fp4Config:
        @classmethod
        def get_min_capability(cls):
            return 80
"""
CMAKE = """
    if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 13.0)
      cuda_archs_loose_intersection(FP4_ARCHS "12.0f" "${CUDA_ARCHS}")
    else()
      cuda_archs_loose_intersection(FP4_ARCHS "12.0a;12.1a" "${CUDA_ARCHS}")
    endif()
    if(FP4_ARCHS)
    endif()
    if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 13.0)
      cuda_archs_loose_intersection(FP4_ARCHS "10.0f;11.0f" "${CUDA_ARCHS}")
    else()
      cuda_archs_loose_intersection(FP4_ARCHS "10.0a;10.1a;10.3a" "${CUDA_ARCHS}")
    endif()
"""
TORCH_UTILS = """
    NAMES = {"fp8": "fp8_e4m3"}

    def get_kv_cache_quant_algo_string(quant_cfg):
        scheme = quant_cfg.get("kv_cache_scheme")
        if isinstance(scheme, dict):
            if scheme.get("num_bits") == 8 and scheme.get("dynamic") is False:
                scheme = "fp8"
            else:
                return "auto"
        return NAMES[scheme] if scheme in NAMES else None
"""
LAYER = """
    class Attention:
        def __init__(self, quant_config, kv_cache_dtype):
            kv_cache_scheme = getattr(quant_config, "kv_cache_scheme", None)
            if kv_cache_scheme is not None{rest}:
                kv_cache_dtype = "fp8"
"""
ENVS = """
    if TYPE_CHECKING:
        VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS: bool = True
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    root = toy.tree(tmp_path_factory.mktemp("weights"), interface=INTERFACE)
    quantization = "vllm/model_executor/layers/quantization"
    toy.write(
        root,
        {
            "vllm/model_executor/kernels/linear/__init__.py": KERNELS,
            f"{quantization}/__init__.py": METHODS,
            f"{quantization}/fp4.py": FP4,
            "vllm/utils/torch_utils.py": TORCH_UTILS,
            "vllm/envs.py": ENVS,
            "vllm/model_executor/layers/attention/attention.py": LAYER.replace(
                "{rest}", " and kv_cache_dtype == 'auto'"
            ),
            "CMakeLists.txt": CMAKE,
        },
    )
    return Selector(Tree(root, "0.30.0"))


def test_fp4_kernels_are_built_where_every_cuda_version_lists_the_card(release):
    built = {arch: fp4_built(release.tree, arch) for arch in ARCHITECTURES}
    assert [arch for arch, value in built.items() if value is True] == [100, 103, 120, 121]
    assert isinstance(built[110], Unknown)
    assert built[90] is False


@pytest.mark.parametrize(("arch", "kernel"), [(80, "Marlin"), (100, "FlashInferNew"), (120, "Cutlass")])
def test_the_first_supported_kernel_is_chosen(release, arch, kernel):
    assert weights.nvfp4_kernel(release, arch)[0] == kernel


@pytest.mark.parametrize(("arch", "words"), [(90, "Gadget"), (110, "CUDA version")])
def test_an_undecided_kernel_in_front_makes_the_choice_unknown(release, arch, words):
    name, _, _, needs = weights.nvfp4_kernel(release, arch)
    assert name is None
    assert words in needs[0]


def test_the_weights_stage_states_capability_kernel_and_arithmetic(release):
    reading = Reading("0.30.0")
    weights.weights(release, reading)
    said = {(atom.arch, str(thawed(atom.when))): thawed(atom.said) for atom in reading.atoms}
    method, nvfp4 = "{'method': 'modelopt_fp4'}", "{'weights': 'nvfp4'}"
    assert said["sm75", method]["reason"] == "the method asks for compute capability 8.0"
    assert said["sm80", method] == {"verdict": "expected"}
    assert said["sm80", nvfp4]["kernel"] == "dequant"
    assert said["sm80", nvfp4]["compute"] == {"activation": "bfloat16"}
    assert said["sm100", nvfp4]["requires_flashinfer"] is True
    assert said["sm120", nvfp4]["kernel"] == "native"
    assert said["sm90", nvfp4]["verdict"] == "unknown"


def test_named_defaults_are_read_with_their_lines(release):
    found = {name: value for name, value, _ in named(release)}
    assert found == {
        "gpu_memory_utilization": 0.92,
        "cuda_graph_memory_in_budget": True,
        "hybrid_group_size_factor": 1.5,
    }


def test_auto_follows_the_checkpoint_as_the_release_maps_it(release):
    assert {scheme: becomes for scheme, becomes, _ in resolved(release)} == {"fp8": "fp8_e4m3", "nvfp4": "model_dtype"}


def test_a_checkpoint_scheme_may_override_auto_only_or_an_explicit_dtype(release, tmp_path):
    assert [explicit for explicit, _ in compressed_tensors(release.tree)] == [False]
    toy.write(tmp_path, {"vllm/__init__.py": "", "vllm/attention/layer.py": LAYER.replace("{rest}", "")})
    assert [explicit for explicit, _ in compressed_tensors(Tree(tmp_path, "0.20.0"))] == [True]


@pytest.mark.parametrize(
    ("accepts", "condition", "refuses"),
    [
        (lambda size: True, None, []),
        (lambda size: size in (64, 128), [64, 128], [{"not": [64, 128]}]),
        (lambda size: size % 8 == 0 and size <= 256, {"max": 256, "multiple_of": 8}, [{"min": 257}]),
        (lambda size: size >= 32, {"min": 32}, [{"max": 31}]),
        (lambda size: size % 16 == 0, {"multiple_of": 16}, []),
    ],
)
def test_head_sizes_are_described_by_their_rule(accepts, condition, refuses):
    accepted = frozenset(filter(accepts, WIDE))
    assert accepting(accepted) == condition
    assert refusing(accepted) == refuses
