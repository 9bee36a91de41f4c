"""What one SGLang release declares about KV cache dtypes, attention backends, weights and logs.

Files move between releases, so every family names all the places it has lived in; the first one that has it decides.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from nvdash.extract.findings import (
    Fact,
    Finder,
    Found,
    assigned,
    collect,
    definition,
    first_line,
    memberships,
    message,
    says,
)
from nvdash.extract.source import Tree

SRT = "sglang/srt"
SERVER_ARGS = f"{SRT}/server_args.py"
RUNNER = f"{SRT}/model_executor/model_runner.py"
RUNNER_CACHE = f"{SRT}/model_executor/model_runner_kv_cache_mixin.py"
CONFIGURATOR = f"{SRT}/model_executor/pool_configurator.py"
OVERRIDES = f"{SRT}/arg_groups/overrides.py"
ATTENTION_HOOK = f"{SRT}/arg_groups/attention_hook.py"
CACHE_HOOK = f"{SRT}/arg_groups/kv_cache_hook.py"
CACHE_DTYPE = f"{SRT}/mem_cache/kv_cache_dtype.py"
POOL = f"{SRT}/mem_cache/memory_pool.py"
REGISTRY = f"{SRT}/layers/attention/attention_registry.py"
FP4_METHODS = f"{SRT}/layers/quantization/fp4_kv_cache_quant_method.py"
FP4_TENSOR = f"{SRT}/layers/quantization/kvfp4_tensor.py"
FP4_UTILS = f"{SRT}/layers/quantization/fp4_utils.py"
TRTLLM_MHA = f"{SRT}/layers/attention/trtllm_mha_backend.py"
COMMON = f"{SRT}/utils/common.py"

RESOLUTION = (CACHE_HOOK, ATTENTION_HOOK, OVERRIDES, SERVER_ARGS, RUNNER)
"""Where checks and silent changes of the server's arguments have lived, newest place first."""

POOL_NAMES = {
    "self.dtype": "dtype",
    "num_tokens": "n",
    "k_size_GB": "k",
    "v_size_GB": "v",
    "cache_name": "label",
}


def argument_files(tree: Tree) -> list[str]:
    """The files that declare command line arguments: the field modules of 0.5.20+, else server_args.py."""
    folder = tree.root / SRT / "arg_groups" / "fields"
    fields = [f"{SRT}/arg_groups/fields/{path.name}" for path in sorted(folder.glob("*.py"))]
    return [*fields, SERVER_ARGS]


def constants(tree: Tree) -> dict[str, Any]:
    """Module-level literals that `choices=` may name, from the argument files and choices.py."""
    values: dict[str, Any] = {}
    for path in (f"{SRT}/arg_groups/choices.py", SERVER_ARGS):
        if tree.has(path):
            for node in tree.module_at(path).tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    try:
                        values[node.targets[0].id] = ast.literal_eval(node.value)
                    except ValueError:
                        continue
    return values


def argument(tree: Tree, name: str) -> tuple[str, int, dict[str, ast.expr]] | None:
    """Where a server argument is declared, and the keywords of its declaration."""
    flag = "--" + name.replace("_", "-")
    for path in argument_files(tree):
        for node in ast.walk(tree.module_at(path).tree) if tree.has(path) else ():
            if isinstance(node, ast.Call) and node.args and _is_flag(node.args[0], flag):
                return path, node.args[0].lineno, {k.arg: k.value for k in node.keywords if k.arg}
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                keywords = [
                    k for call in ast.walk(node.annotation) if isinstance(call, ast.Call) for k in call.keywords
                ]
                if keywords:
                    return path, node.lineno, {k.arg: k.value for k in keywords if k.arg}
    return None


def _is_flag(node: ast.expr, flag: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == flag


def choices(name: str) -> Finder:
    """A finder for the values that an argument admits."""

    def find(tree: Tree) -> Found | None:
        declared = argument(tree, name)
        if declared is None or "choices" not in declared[2]:
            return None
        path, line, keywords = declared
        node = keywords["choices"]
        value = constants(tree).get(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)
        return (list(value), path, line) if value is not None else None

    return find


def declared(name: str, value: Any) -> Finder:
    """A finder for the mere presence of an argument."""

    def find(tree: Tree) -> Found | None:
        found = argument(tree, name)
        return (value, found[0], found[1]) if found else None

    return find


def _kv4_check(tree: Tree) -> Found | None:
    for path in (CACHE_HOOK, SERVER_ARGS):
        for name in ("handle_kv4_compatibility", "_handle_kv4_compatibility"):
            node = definition(tree, path, name)
            if node is not None:
                return "<first>", path, node.lineno
    return None


def _fp4_pool(tree: Tree) -> Found | None:
    node = definition(tree, POOL, "MHATokenToKVPoolFP4")
    gap = "<first> (<before> lists the flag and halves the MLA sizing but has no FP4 pool class)"
    return (gap, POOL, node.lineno) if node is not None else None


def _deprecated_fp4(tree: Tree) -> Found | None:
    """0.5.16-0.5.20: the word stays in the choices, and resolving it raises."""
    hit = message(tree, (CACHE_DTYPE,), r"--kv-cache-dtype=fp4_e2m1 is deprecated")
    listed = choices("kv_cache_dtype")(tree)
    if hit is None or listed is None or "fp4_e2m1" not in listed[0]:
        return None
    return "listed in choices, raises ValueError when resolved", hit[0], hit[1]


def _exponent_scaled_format(tree: Tree) -> Found | None:
    """The block-16 format with exponent-only scales: the line that describes it, else its class."""
    hit = first_line(tree, (FP4_TENSOR,), r"Similar to MXFP4 but uses block_size=16|^class KVFP4QuantizeUtil")
    return (EXPONENT_SCALED, hit[0], hit[1]) if hit else None


EXPONENT_SCALED = "E2M1, block 16, one exponent-only uint8 scale per block, no global scale"
NVFP4 = "E2M1, block 16, FP8 E4M3 block scale, per-layer FP32 global scale"


def _kv4_choices(which: str) -> Finder:
    return assigned((CACHE_HOOK, SERVER_ARGS), f"KV4_{which}_BACKEND_CHOICES")


def _nvfp4_families(tree: Tree) -> Found | None:
    hit = message(tree, RESOLUTION, r"--kv-cache-dtype=nvfp4 requires Blackwell")
    if hit is None:
        return None
    names = re.findall(r"SM\d+", hit[2])
    return [f"{name.lower()}-family" for name in names], hit[0], hit[1]


def _mxfp8_majors(tree: Tree) -> Found | None:
    hit = message(tree, RESOLUTION, r"--kv-cache-dtype mxfp8 requires")
    majors = capability_majors(tree, "is_blackwell_supported")
    return (f"majors {', '.join(map(str, majors))}", hit[0], hit[1]) if hit and majors else None


def capability_majors(tree: Tree, probe: str) -> list[int] | None:
    """The compute capability majors that a platform probe of utils/common.py admits."""
    if not tree.has(COMMON):
        return None
    for node in ast.walk(tree.module_at(COMMON).tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == probe for t in node.targets):
            for part in ast.walk(node.value):
                if isinstance(part, ast.keyword) and part.arg == "device_capability_majors":
                    return list(ast.literal_eval(part.value))
    return None


def _prefill_workspace(tree: Tree) -> Found | None:
    """Prefill backends that read NVFP4 through a workspace of another dtype."""
    for name in ("_NVFP4_PREFILL_BACKENDS", "_NVFP4_DQ_KV_PREFILL_BACKENDS"):
        found = assigned((FP4_METHODS,), name)(tree)
        if found:
            return dict.fromkeys(found[0], "dequant workspace fp8_e4m3"), found[1], found[2]
    return None


def _mla_dtypes(tree: Tree) -> Found | None:
    """The cache dtypes that trtllm_mla admits: the membership test just above its refusal."""
    hit = message(tree, RESOLUTION, r"^TensorRT-LLM MLA backend only supports kv-cache-dtype")
    if hit is None:
        return None
    tests = [t for t in memberships(tree.module_at(hit[0]).tree, "kv_cache_dtype") if t[0] < hit[1]]
    return (tests[-1][1], hit[0], tests[-1][0]) if tests else None


def _mha_page_sizes(tree: Tree) -> Found | None:
    """What trtllm_mha does to a page size it does not take; the membership test just above the warning says."""
    hit = message(tree, RESOLUTION, r"TensorRT-LLM MHA only supports page_size")
    if hit is None:
        return None
    tests = [t for t in memberships(tree.module_at(hit[0]).tree, "page_size") if t[0] < hit[1]]
    line, sizes = max(tests)
    forced = re.search(r"to (\d+)\.$", hit[2])
    allowed = ", ".join(map(str, sizes[:-1])) + f" or {sizes[-1]}"
    return (f"{allowed}, anything else silently becomes {forced[1]}", hit[0], line) if forced else None


def _mha_architectures(tree: Tree) -> Found | None:
    """Architectures trtllm_mha may run on, for prefill and decode, from the probes of its guards."""
    stages = {}
    place = None
    for stage in ("prefill", "decode"):
        hit = message(tree, RESOLUTION, rf"^TRTLLM MHA backend for {stage} (is only supported|requires)") or message(
            tree, RESOLUTION, r"^TRTLLM MHA backend is only supported"
        )
        if hit is None:
            return None
        stages[stage] = [f"sm{major}" for major in _probed(tree, hit[0], hit[1])]
        place = hit
    return (stages, place[0], place[1]) if place else None


def _probed(tree: Tree, path: str, line: int) -> list[int]:
    """The `is_smNN` probes in the condition of the `if` whose raise holds this line."""
    tests = [
        node
        for node in ast.walk(tree.module_at(path).tree)
        if isinstance(node, ast.If) and node.body and node.body[0].lineno <= line <= (node.body[0].end_lineno or 0)
    ]
    test = ast.unparse(max(tests, key=lambda node: node.lineno).test)
    return sorted({int(number) for number in re.findall(r"is_sm(\d+)", test)})


def _fa3_range(tree: Tree) -> Found | None:
    hit = message(tree, (REGISTRY, RUNNER), r"FlashAttention v3 Backend requires SM>=(\d+) and SM<=(\d+)")
    bounds = re.search(r"SM>=(\d+) and SM<=(\d+)", hit[2]) if hit else None
    return (f"{bounds[1]} to {bounds[2]}", hit[0], hit[1]) if hit and bounds else None


def _pool_log(tree: Tree) -> Found | None:
    """The line that states the pool's size, with our names for what it prints."""
    hit = message(tree, (POOL,), r"(KV Cache is allocated|\{cache_name\}).*K size")
    if hit is None:
        return None
    text = re.sub(r"\{'VA upper bound' if .* else 'is allocated'\}", "is allocated|VA upper bound", hit[2])
    text = re.sub(r"\{([\w.]+)(:[^}]*)?\}", lambda m: f"{{{POOL_NAMES.get(m[1], m[1])}{m[2] or ''}}}", text)
    return text.replace("{label} ", "{label}KV Cache "), hit[0], hit[1]


def _dtype_log(tree: Tree) -> Found | None:
    hit = message(tree, (RUNNER,), r"^Using KV cache dtype: ")
    text = hit[2].replace("{self.kv_cache_dtype}", "{dtype}") if hit else ""
    return (f"{text} (<first> to <last> only)", hit[0], hit[1]) if hit else None


def _recipe_log(tree: Tree) -> Found | None:
    """The warning that names the FP4 recipe; `%s` stands for the flag values of its branch."""
    hit = message(tree, (CACHE_DTYPE, RUNNER), r"KV Cache might lead to an? accuracy drop")
    if hit is None or "%s" not in hit[2]:
        return (hit[2], hit[0], hit[1]) if hit else None
    branches = [
        values
        for line, values in memberships(tree.module_at(hit[0]).tree, "server_args_kv_cache_dtype", ast.In)
        if line < hit[1]
    ]
    names = "|".join(value.upper() for value in branches[-1])
    return hit[2].replace("%s", f"{{{names}}}"), hit[0], hit[1]


def _message_text(paths: tuple[str, ...], pattern: str) -> Finder:
    def find(tree: Tree) -> Found | None:
        hit = message(tree, paths, pattern)
        return (hit[2], hit[0], hit[1]) if hit else None

    return find


def _said(paths: tuple[str, ...], pattern: str, value: Any) -> Finder:
    """A finder for a sentence about a guard or a silent change, placed at its message."""

    def find(tree: Tree) -> Found | None:
        hit = message(tree, paths, pattern)
        return (value, hit[0], hit[1]) if hit else None

    return find


def _mla_pool_format(tree: Tree) -> Found | None:
    """What the MLA FP4 pool writes, whatever the flag says; named once `nvfp4` is a flag value."""
    pool = definition(tree, POOL, "MLATokenToKVPoolFP4")
    listed = choices("kv_cache_dtype")(tree)
    if pool is None or listed is None:
        return None
    for node in ast.walk(pool):
        if isinstance(node, ast.Attribute) and node.attr == "batched_quantize":
            also = ", including --kv-cache-dtype nvfp4" if "nvfp4" in listed[0] else ""
            return f"block-16 exponent-scale codes whatever the flag says{also}", POOL, node.lineno
    return None


def pinned_flashinfer(tree: Tree) -> tuple[str, str, int] | None:
    """The FlashInfer release that the wheel's metadata pins, and the line of METADATA."""
    hit = first_line(tree, ("METADATA",), r"^Requires-Dist: flashinfer[-_]python(?:\[[^\]]*\])?\s*\(?==\s*([^\s;)]+)")
    return (hit[2][1], hit[0], hit[1]) if hit else None


def _pin(tree: Tree) -> Found | None:
    """The pin as a fact: it belongs to the whole of METADATA, not to a line."""
    pin = pinned_flashinfer(tree)
    return (pin[0], pin[1], None) if pin else None


def quantisation(tree: Tree) -> Iterator[Fact]:
    """Minimum compute capability of every quantisation method and compressed-tensors scheme that states a literal."""
    base = tree.root / SRT / "layers" / "quantization"
    seen: set[str] = set()
    for full in sorted(base.rglob("*.py")):
        path = full.relative_to(tree.root).as_posix()
        for node in tree.module_at(path).tree.body:
            if isinstance(node, ast.ClassDef):
                methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
                name = _method_name(full.stem, node.name, methods)
                for suffix, number, line in _capabilities(methods.get("get_min_capability")) if name else ():
                    named = suffix or name
                    if named not in seen:
                        seen.add(str(named))
                        yield Fact(f"quant.{named}.min_capability", number, path, line)


VENDORS = ("musa", "hip", "npu", "xpu", "cpu")
"""Other platforms: a test that names one of them is false on an NVIDIA GPU."""


def _capabilities(function: ast.FunctionDef | None) -> Iterator[tuple[str, int, int]]:
    """What `get_min_capability` returns on an NVIDIA GPU: one number, or one for MXFP8 and one for plain FP8."""
    for node in function.body if function else ():
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _branches(node.value, node.lineno)


def _branches(node: ast.expr, line: int) -> Iterator[tuple[str, int, int]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "", node.value, line
    elif isinstance(node, ast.IfExp):
        test = ast.unparse(node.test)
        if "use_mxfp8" in test:
            yield from (("mxfp8", number, at) for _, number, at in _branches(node.body, line))
            yield from _branches(node.orelse, line)
        elif any(vendor in test for vendor in VENDORS):
            yield from _branches(node.body if test.startswith("not ") else node.orelse, line)


def _method_name(stem: str, class_name: str, methods: dict[str, ast.FunctionDef]) -> str | None:
    if stem.startswith("compressed_tensors_"):
        return None if class_name.startswith("_") else f"compressed_tensors.{stem.removeprefix('compressed_tensors_')}"
    named = methods.get("get_name")
    returns = [n for n in ast.walk(named) if isinstance(n, ast.Return)] if named else []
    words = [n.value for n in ast.walk(returns[-1]) if isinstance(n, ast.Constant)] if returns else []
    return str(words[-1]) if words else None


FAMILIES: tuple[tuple[str, Finder], ...] = (
    ("kv_cache_dtype.choices", choices("kv_cache_dtype")),
    ("attention_backend.choices", choices("attention_backend")),
    ("quantization.choices", choices("quantization")),
    ("kv_cache_dtype.fp4_e2m1", _deprecated_fp4),
    (
        "kv_cache_dtype.fp4_e2m1.without_torch_float4",
        _said(
            (RUNNER,),
            r"falls back to 'auto' because this torch version does not support",
            "silently replaced by model dtype, warning only",
        ),
    ),
    (
        "kv_cache_dtype.fp4.without_torch_float4",
        _said((CACHE_DTYPE,), r"requires torch\.float4_e2m1fn_x2 support", "raises ValueError when resolved"),
    ),
    (
        "kv_cache_dtype.auto",
        says(
            (CACHE_DTYPE, RUNNER),
            r'kv_cache_quant_algo\.upper\(\) == "FP8"',
            "only an FP8 KV algorithm in the checkpoint changes auto; an NVFP4 KV checkpoint stays at model dtype",
        ),
    ),
    ("kv_cache_dtype.nvfp4.sm", _nvfp4_families),
    ("kv_cache_dtype.mxfp8.sm", _mxfp8_majors),
    ("kv_fp4.format.fp4_e2m1", _exponent_scaled_format),
    ("kv_fp4.format.nvfp4", says((FP4_METHODS,), r"NVFP4 two-level scaling: global FP32 \+ per-block FP8 E4M3", NVFP4)),
    ("kv4.mha.same_backend_choices", _kv4_choices("ATTENTION_MHA")),
    ("kv4.mla.same_backend_choices", _kv4_choices("ATTENTION_MLA")),
    ("kv4.mha.fa4_prefill_decode_choices", _kv4_choices("FA4_MHA")),
    ("kv4.mla.fa4_prefill_decode_choices", _kv4_choices("FA4_MLA")),
    ("prefill_kv_cache_dequant_dtype.first_version", declared("prefill_kv_cache_dequant_dtype", "<first>")),
    ("kv4.check.first_version", _kv4_check),
    ("kv_fp4.pool_classes.first_version", _fp4_pool),
    ("nvfp4.prefill_backends", _prefill_workspace),
    ("nvfp4.native_prefill_backends", assigned((FP4_METHODS,), "_NVFP4_KV_PREFILL_BACKENDS")),
    (
        "nvfp4.mha.trtllm_mha_prefill",
        _said((TRTLLM_MHA,), r"native FP4 KV cache supports decode only", "fails at forward time, RuntimeError"),
    ),
    (
        "nvfp4.native.head_dim",
        _said((FP4_METHODS,), r"Native NVFP4 requires head_dim divisible by 64", "multiple of 64"),
    ),
    (
        "nvfp4.native.page_size",
        _said((FP4_METHODS,), r"Native NVFP4 requires page_size divisible by 4", "multiple of 4"),
    ),
    ("trtllm_mla.kv_dtypes", _mla_dtypes),
    ("trtllm_mha.page_size", _mha_page_sizes),
    ("trtllm_mha.sm", _mha_architectures),
    (
        "trtllm_mha.prefill.sm120.fp8_e4m3",
        _said(RESOLUTION, r"TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3", "refused, ValueError"),
    ),
    ("fa3.sm", _fa3_range),
    (
        "fa3.fp8_e5m2",
        _said(
            RESOLUTION,
            r"FlashAttention3 only supports fp8_e4m3 if using FP8",
            "attention backend silently set to triton, warning only",
        ),
    ),
    ("mla_fp4_pool.format", _mla_pool_format),
    ("log.kv_dtype", _dtype_log),
    ("log.pool", _pool_log),
    ("log.fp4_recipe", _recipe_log),
    ("log.nvfp4_paths", _message_text((CACHE_HOOK,), r"^NVFP4 prefill dequant dtype: %s")),
    ("requires.flashinfer", _pin),
)


def read(tree: Tree) -> list[Fact]:
    """Every fact that the source states as it stands; what has to be evaluated is in `sglang_config`."""
    return [*collect(tree, FAMILIES), *quantisation(tree)]
