"""llama.cpp as llama-cpp-python vendors it: cache types and native FP4, on a small tree."""

from nvdash.extract import llamacpp
from tests.extract.trees import tree_of

FILES = {
    "vendor/llama.cpp/common/arg.cpp": """
        // types
        const std::vector<ggml_type> kv_cache_types = {
            GGML_TYPE_F16,
            GGML_TYPE_Q4_0,
        };
        const int other = GGML_TYPE_Q8_0;
    """,
    "vendor/llama.cpp/ggml/include/ggml.h": "GGML_TYPE_NVFP4   = 40, // NVFP4\n",
    "vendor/llama.cpp/ggml/src/ggml-cuda/common.cuh": """
        #define GGML_CUDA_CC_BLACKWELL       1200
        #if __CUDA_ARCH__ >= GGML_CUDA_CC_BLACKWELL && __CUDA_ARCH__ < GGML_CUDA_CC_RUBIN
    """,
    "vendor/llama.cpp/ggml/src/ggml-cuda/mmq.cu": "x = (type == GGML_TYPE_NVFP4) && blackwell_mma_available(cc);\n",
}


def test_cache_types_and_native_fp4_are_read_with_their_lines(tmp_path):
    tree_of(tmp_path, FILES, llamacpp.PACKAGE)
    said = {fact.fact: (fact.value, fact.line) for fact in llamacpp.read(tmp_path, "vendored in x 1.0")}
    assert said["cache_types"] == (["f16", "q4_0"], 2)
    assert said["weights.nvfp4.type_id"] == (40, 1)
    assert said["weights.nvfp4_mxfp4.native_fp4_mma"] == (
        "only on devices with Blackwell MMA (compute 12.0 and up, below Rubin), else dequantised path",
        1,
    )


def test_what_a_copy_does_not_have_is_left_out(tmp_path):
    tree_of(tmp_path, {"vendor/llama.cpp/ggml/include/ggml.h": "GGML_TYPE_F16 = 1,\n"}, llamacpp.PACKAGE)
    assert llamacpp.read(tmp_path, "vendored in x 1.0") == []
