"""Facts that SGLang's source decides only when it is run: default backends, verdicts of its checks, automatic GEMMs."""

import ast
from collections.abc import Callable, Iterable
from typing import Any

from nvdash.extract.findings import Fact, definition, first_line, in_order
from nvdash.extract.sglang_config import Configuration, Outcome, Question
from nvdash.extract.sglang_facts import (
    ATTENTION_HOOK,
    CACHE_HOOK,
    FP4_UTILS,
    OVERRIDES,
    RUNNER,
    SERVER_ARGS,
    SRT,
    TRTLLM_MHA,
    capability_majors,
    choices,
)
from nvdash.extract.source import Tree

DEFAULTS_BASE = f"{SRT}/arg_groups/model_override_base.py"
DEFAULTS = ("sm80", "sm89", "sm90", "sm100", "sm103", "sm110", "sm120")
WEIGHT_ONLY = {"marlin": "marlin (weight only)"}


def read(tree: Tree, configuration: Configuration) -> list[Fact]:
    """Every fact of this release that is evaluated."""
    facts = [*_default_backends(tree, configuration), *_nvfp4_verdicts(tree, configuration)]
    facts += [fact for fact in (_bfloat16_on_trtllm_mla(tree, configuration), _automatic_gemm(tree)) if fact]
    return facts


def _default_backends(tree: Tree, configuration: Configuration) -> Iterable[Fact]:
    """The backend of each architecture when none is named, and where the release documents its rule."""
    place = (
        _defined(tree, "get_default_attn_backend", (DEFAULTS_BASE, OVERRIDES, SERVER_ARGS))
        or _defined(tree, "handle_attention_backend_compatibility", (SERVER_ARGS,))
        or _defined(tree, "model_specific_adjustment", (RUNNER,))
    )
    rule = first_line(tree, (DEFAULTS_BASE, OVERRIDES, SERVER_ARGS, RUNNER), r"^\s+1\.2 (Use|In other)")
    if place is None:
        return
    for kind, mla in (("mha", False), ("mla", True)):
        backends = {arch: configuration.ask(Question(arch, "auto", mla)).prefill for arch in DEFAULTS}
        yield Fact(f"default_backend.{kind}", {a: b or "unknown" for a, b in backends.items()}, *place)
        if kind == "mha" and rule and backends["sm100"]:
            yield Fact("default_backend.mha.sm100", backends["sm100"], rule[0], rule[1])


def _defined(tree: Tree, name: str, paths: Iterable[str]) -> tuple[str, int] | None:
    for path in paths:
        for spelled in (name, f"_{name}"):
            node = definition(tree, path, spelled)
            if node is not None:
                return path, node.lineno
    return None


def _nvfp4_verdicts(tree: Tree, configuration: Configuration) -> Iterable[Fact]:
    """What `--kv-cache-dtype nvfp4` leads to, without a backend flag and with the pair that is meant for it."""
    place = _defined(tree, "handle_nvfp4_prefill_kv_dequant_dtype", (CACHE_HOOK,)) or _defined(
        tree, "handle_kv4_compatibility", (CACHE_HOOK, SERVER_ARGS)
    )
    words = choices("kv_cache_dtype")(tree)
    if place is None or words is None or "nvfp4" not in words[0]:
        return
    decode_only = "native FP4 KV cache supports decode only" in tree.text(TRTLLM_MHA)

    def said(outcome: Outcome) -> str:
        if outcome.accepted and decode_only and outcome.prefill == "trtllm_mha":
            return "fails_forward"
        return _spelled(outcome, f"prefill {outcome.prefill}, decode {outcome.decode}, page {outcome.page_size}")

    archs = ("sm80", "sm90", "sm100", "sm103", "sm110", "sm120", "sm121")
    yield Fact(
        "verdict.mha.nvfp4.default_backends",
        {arch: said(configuration.ask(Question(arch, "nvfp4"))) for arch in archs},
        *place,
    )
    pair = {
        arch: configuration.ask(Question(arch, "nvfp4", prefill="flashinfer", decode="trtllm_mha"))
        for arch in ("sm90", "sm100", "sm120")
    }
    yield Fact(
        "verdict.mha.nvfp4.prefill_flashinfer_decode_trtllm_mha",
        {arch: _spelled(outcome, "accepted") for arch, outcome in pair.items()},
        *place,
    )


def _spelled(outcome: Outcome, accepted: str) -> str:
    if outcome.refusal is not None:
        return f"refused_{outcome.refusal.layer}"
    return accepted if outcome.accepted else "unknown"


def _bfloat16_on_trtllm_mla(tree: Tree, configuration: Configuration) -> Fact | None:
    """The list of trtllm_mla has `bf16` but not `bfloat16`."""
    place = _defined(tree, "mla_kv_cache_dtype_checks", (OVERRIDES,)) or _defined(
        tree, "handle_attention_backend_compatibility", (ATTENTION_HOOK, SERVER_ARGS)
    )
    words = choices("kv_cache_dtype")(tree)
    listed = choices("attention_backend")(tree)
    if place is None or not words or "bfloat16" not in words[0] or not listed or "trtllm_mla" not in listed[0]:
        return None
    said = {
        arch: _spelled(configuration.ask(Question(arch, "bfloat16", True, "trtllm_mla")), "accepted")
        for arch in ("sm100", "sm120")
    }
    return Fact("verdict.mla.bfloat16.trtllm_mla", said, *place)


def _automatic_gemm(tree: Tree) -> Fact | None:
    """The FP4 GEMM that `auto` becomes on each architecture, from the chain of probes in fp4_utils.py."""
    function = definition(tree, FP4_UTILS, "initialize_fp4_gemm_config")
    if function is None:
        return None
    for node in in_order(function, ast.If):
        if ast.unparse(node.test).replace("'", '"') == 'backend == "auto"':
            chosen = {
                arch: _chosen(tree, node.body, number)
                for arch, number in (("sm80-sm90", 80), ("sm100", 100), ("sm120", 120))
            }
            if all(chosen.values()):
                return Fact(
                    "quant.modelopt_fp4.auto_gemm",
                    {arch: WEIGHT_ONLY.get(name or "", name) for arch, name in chosen.items()},
                    FP4_UTILS,
                    node.lineno,
                )
    return None


def _chosen(tree: Tree, body: list[ast.stmt], arch: int) -> str | None:
    """The literal a chain of `if is_smNN… elif … else` assigns on one architecture."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            return str(node.value.value)
        if isinstance(node, ast.If):
            holds = _holds(tree, node.test, arch)
            return None if holds is None else _chosen(tree, node.body if holds else node.orelse, arch)
    return None


def _holds(tree: Tree, test: ast.expr, arch: int) -> bool | None:
    """Whether a test of platform probes and capability bounds holds on an NVIDIA GPU; None when it asks more."""
    if isinstance(test, ast.BoolOp):
        parts = [_holds(tree, part, arch) for part in test.values]
        return None if None in parts else (all if isinstance(test.op, ast.And) else any)(map(bool, parts))
    if isinstance(test, ast.Compare) and "get_device_capability" in ast.unparse(test):
        return _in_bounds(test, (arch // 10, arch % 10))
    name = ast.unparse(test).removesuffix("()").rpartition(".")[2]
    if name == "is_cuda":
        return True
    majors = capability_majors(tree, name if name.endswith("_supported") else f"{name}_supported")
    return None if majors is None else arch // 10 in majors


COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Eq: lambda a, b: a == b,
}


def _in_bounds(test: ast.Compare, capability: tuple[int, int]) -> bool | None:
    """A chained comparison of the device capability with literal tuples."""
    try:
        values = [
            capability if isinstance(part, ast.Call) else ast.literal_eval(part)
            for part in (test.left, *test.comparators)
        ]
    except ValueError:
        return None
    return all(COMPARISONS[type(op)](values[i], values[i + 1]) for i, op in enumerate(test.ops))
