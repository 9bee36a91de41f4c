"""Reads llama.cpp as llama-cpp-python vendors it: its cache types, and what NVFP4 weights run on."""

import re
from pathlib import Path

from nvdash.extract.findings import Fact, first_line
from nvdash.extract.source import Tree

PACKAGE = "vendor/llama.cpp"
ARGUMENTS = f"{PACKAGE}/common/arg.cpp"
GGML = f"{PACKAGE}/ggml/include/ggml.h"
MMQ = f"{PACKAGE}/ggml/src/ggml-cuda/mmq.cu"
CUDA = f"{PACKAGE}/ggml/src/ggml-cuda/common.cuh"
CACHE = f"{PACKAGE}/src/llama-kv-cache.cpp"
CONTEXT = f"{PACKAGE}/src/llama-context.cpp"


def read(root: Path, release: str) -> list[Fact]:
    """The facts of one vendored copy."""
    tree = Tree(root, release, PACKAGE)
    facts = [_cache_types(tree), _type_id(tree), _native_fp4(tree)]
    for name, path, pattern, value in (
        ("cache.quantised_v", CONTEXT, r"quantized V cache requires flash_attn", "needs flash attention"),
        (
            "log.pool",
            CACHE,
            r'LLAMA_LOG_INFO\("%s: size = .*K \(%s\)',
            "size = %7.2f MiB (%6u cells, %3d layers, %2u/%u seqs), K (%s): %7.2f MiB, V (%s): %7.2f MiB",
        ),
    ):
        hit = first_line(tree, (path,), pattern)
        facts.append(Fact(name, value, hit[0], hit[1]) if hit else None)
    return [fact for fact in facts if fact is not None]


def _cache_types(tree: Tree) -> Fact | None:
    """The names that --cache-type-k and --cache-type-v take, in the list's order."""
    start = first_line(tree, (ARGUMENTS,), r"std::vector<ggml_type> kv_cache_types = \{")
    if start is None:
        return None
    body = "\n".join(tree.text(ARGUMENTS).splitlines()[start[1] :])
    names = re.findall(r"GGML_TYPE_(\w+)", body[: body.index("}")])
    return Fact("cache_types", [name.lower() for name in names], *start[:2])


def _type_id(tree: Tree) -> Fact | None:
    hit = first_line(tree, (GGML,), r"GGML_TYPE_NVFP4\s*=\s*(\d+)")
    return Fact("weights.nvfp4.type_id", int(hit[2][1]), hit[0], hit[1]) if hit else None


def _native_fp4(tree: Tree) -> Fact | None:
    """Where NVFP4 and MXFP4 weights meet native FP4 instructions, from the bounds in common.cuh."""
    rule = first_line(tree, (MMQ,), r"GGML_TYPE_NVFP4.*blackwell_mma_available")
    low = first_line(tree, (CUDA,), r"#define GGML_CUDA_CC_BLACKWELL\s+(\d+)")
    below = first_line(tree, (CUDA,), r"__CUDA_ARCH__ < GGML_CUDA_CC_(\w+)")
    if rule is None or low is None or below is None:
        return None
    first = f"{int(low[2][1]) // 100}.{int(low[2][1]) % 100 // 10}"
    value = (
        f"only on devices with Blackwell MMA (compute {first} and up, below {below[2][1].title()}), "
        "else dequantised path"
    )
    return Fact("weights.nvfp4_mxfp4.native_fp4_mma", value, rule[0], rule[1])
