"""What one FlashInfer release declares about NVFP4 KV caches: append, dequantise, FA2, FA3, XQA and trtllm-gen.

Kernel sources ship in the wheel, so the C++ side is read as text and the Python side by its syntax tree.
`<first>` and `<before>` in a value stand for releases; `history.relate` fills them in.
"""

import ast
from typing import Any

from nvdash.extract.findings import Fact, Finder, Found, assigned, collect, definition, first_line, in_order, message
from nvdash.extract.source import Tree

PAGE = "flashinfer/page.py"
QUANTISE = "flashinfer/quantization/fp4_quantization.py"
UTILS = "flashinfer/utils.py"
XQA = "flashinfer/xqa.py"
JIT_XQA = "flashinfer/jit/xqa.py"
DECODE = "flashinfer/decode.py"
PREFILL = "flashinfer/prefill.py"
MODULES = "flashinfer/jit/attention/modules.py"
FA2_KERNEL = "flashinfer/data/include/flashinfer/attention/prefill.cuh"


def _append(nvfp4: str, wide: str, present: str) -> Finder:
    """A finder for an NVFP4 append function; where it is absent, the place is the append it would stand beside."""

    def find(tree: Tree) -> Found | None:
        node = definition(tree, PAGE, nvfp4)
        if node is not None:
            return present, PAGE, node.lineno
        beside = definition(tree, PAGE, wide)
        return ("absent", PAGE, beside.lineno) if beside is not None else None

    return find


def _four_over_six(tree: Tree) -> Found | None:
    hit = first_line(tree, (PAGE,), r"^def get_page_module\(.*nvfp4_4over6")
    return ("<first> (absent in <before>)", hit[0], hit[1]) if hit else None


def _capabilities(function: str) -> Finder:
    """A finder for the literal of `@supported_compute_capability([...])` on a check function."""

    def find(tree: Tree) -> Found | None:
        node = definition(tree, QUANTISE, function)
        for decorator in node.decorator_list if node else ():
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "supported_compute_capability":
                return list(ast.literal_eval(decorator.args[0])), QUANTISE, node.lineno if node else None
        return None

    return find


def _line(paths: tuple[str, ...], pattern: str, value: Any) -> Finder:
    def find(tree: Tree) -> Found | None:
        hit = first_line(tree, paths, pattern)
        return (value, hit[0], hit[1]) if hit else None

    return find


def _majors_tested(pattern: str, only: bool) -> Finder:
    """A finder for the capability majors tested just before a message; `only` puts a single one into words."""

    def find(tree: Tree) -> Found | None:
        hit = message(tree, (XQA,), pattern)
        if hit is None:
            return None
        tests = [
            node
            for node in in_order(tree.module_at(XQA).tree, ast.Compare)
            if node.lineno <= hit[1]
            and isinstance(node.ops[0], ast.In | ast.NotIn)
            and "get_compute_capability" in ast.unparse(node.left)
        ]
        majors = list(ast.literal_eval(tests[-1].comparators[0]))
        return (f"major {majors[0]} only" if only and len(majors) == 1 else majors), XQA, hit[1]

    return find


def _xqa_head_sizes(tree: Tree) -> Found | None:
    hit = first_line(tree, (JIT_XQA,), r"if head_dim % (\d+) != 0 or head_dim > (\d+) or head_dim < (\d+)")
    if hit is None:
        return None
    step, most, least = hit[2].groups()
    value = f"{least} to {most}, multiple of {step}"
    ratio = first_line(tree, (JIT_XQA,), r"head_dim \{head_dim\} > (\d+) requires head_group_ratio <= (\d+)")
    if ratio:
        value += f"; above {ratio[2][1]} no speculative decode and group ratio at most {ratio[2][2]}"
    return value, hit[0], hit[1]


def _split_kv(tree: Tree) -> Found | None:
    """Architectures on which FA2 runs NVFP4 without split-KV: a literal from 0.7.0, every one in 0.6.18."""
    listed = assigned((PREFILL,), "_NVFP4_SPLIT_KV_BROKEN_ARCHS")(tree)
    if listed:
        return [f"{major}.{minor}" for major, minor in listed[0]], listed[1], listed[2]
    everywhere = definition(tree, PREFILL, "_nvfp4_kv_requires_disabled_split_kv")
    return ("every SM", PREFILL, everywhere.lineno) if everywhere else None


def _large_heads(tree: Tree) -> Found | None:
    """Majors that FA2 is built for above head size 256 with an NVFP4 cache, for prefill and decode."""
    node = definition(tree, MODULES, "_fa2_head_dim_nvcc_flags")
    if node is None or "nvfp4" not in ast.unparse(node):
        return None
    lists = [
        list(ast.literal_eval(k.value))
        for call in in_order(node, ast.Call)
        for k in call.keywords
        if k.arg == "supported_major_versions"
    ]
    narrow, wide = min(lists, key=len), max(lists, key=len)
    prefill = wide if definition(tree, MODULES, "_fa2_prefill_head_dim_nvcc_flags") else narrow
    return {"prefill": _majors(prefill), "decode": _majors(narrow)}, MODULES, node.lineno


def _majors(numbers: list[int]) -> str:
    if len(numbers) > 3 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"majors {numbers[0]} to {numbers[-1]}"
    return f"majors {', '.join(map(str, numbers))}"


def _fa3_rule(tree: Tree) -> Found | None:
    hit = first_line(tree, (UTILS,), r"^    if dtype_kv == torch\.uint8:")
    return ("refused by is_fa3_backend_supported (rule absent in <before>)", hit[0], hit[1]) if hit else None


FAMILIES: tuple[tuple[str, Finder], ...] = (
    (
        "append.nvfp4.gqa",
        _append(
            "nvfp4_quantize_append_paged_kv_cache",
            "append_paged_kv_cache",
            "present (bf16/fp16 input, any SM: no arch guard in the launcher)",
        ),
    ),
    (
        "append.nvfp4.mla",
        _append(
            "nvfp4_quantize_append_paged_mla_kv_cache", "append_paged_mla_kv_cache", "present (absent in <before>)"
        ),
    ),
    ("append.nvfp4_4over6.first_version_read", _four_over_six),
    ("nvfp4_kv_dequantize.sm", _capabilities("_nvfp4_kv_dequant_check")),
    ("nvfp4_kv_quantize.sm", _capabilities("_nvfp4_kv_quant_check")),
    (
        "fa2.nvfp4_kv.first_version",
        _line((FA2_KERNEL,), r"struct is_fp4_type<__nv_fp4x2_e2m1>", "<first> (absent in <before>)"),
    ),
    ("fa2.nvfp4_kv.split_kv_disabled_sm", _split_kv),
    ("fa2.nvfp4_kv.head_dim_above_256", _large_heads),
    ("fa3.nvfp4_kv", _fa3_rule),
    (
        "fa3.fp8_kv",
        _line(
            (UTILS,),
            r"if dtype_kv in \{torch\.float8_e4m3fn, torch\.float8_e5m2\} and dtype_q not in",
            "needs an FP8 query, otherwise auto falls to fa2",
        ),
    ),
    ("xqa.nvfp4_kv.sm", _majors_tested(r"^XQA NVFP4 KV is only supported", only=True)),
    ("xqa.sm_majors", _majors_tested(r"^XQA is only supported", only=False)),
    ("xqa_mla.sm", _majors_tested(r"^XQA MLA is only supported", only=True)),
    ("xqa.head_dim", _xqa_head_sizes),
    (
        "trtllm_batch_decode.auto",
        _line(
            (DECODE,),
            r'"trtllm-gen" if get_compute_capability\(query\.device\)\[0\] == 10 else "xqa"',
            "trtllm-gen when major is 10, else xqa",
        ),
    ),
    ("trtllm_gen.nvfp4_kv.sm107", _line((DECODE,), r"KV Cache NVFP4 is not supported on SM107", "refused")),
)


def read(tree: Tree) -> list[Fact]:
    """Every fact of this release that concerns an NVFP4 KV cache."""
    return collect(tree, FAMILIES)
