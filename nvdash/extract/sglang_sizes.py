"""How many bytes SGLang counts per token and GPU when it sizes the pool, computed with the release's own formula.

The formula is taken out of the sizing function and evaluated with the numbers of one geometry; only arithmetic on
known names is admitted, anything else gives no answer.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nvdash.extract.findings import Fact, definition, in_order
from nvdash.extract.sglang_facts import CONFIGURATOR, FP4_METHODS, RUNNER, RUNNER_CACHE
from nvdash.extract.source import Tree

LAYERS, KV_HEADS, HEAD_DIM = 80, 8, 128
SIZING_FILES = (CONFIGURATOR, RUNNER_CACHE, RUNNER)
ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class NotArithmetic(Exception):
    """The formula needs something else than the given numbers."""


@dataclass(frozen=True, slots=True)
class Formula:
    """Names and calls that the formula may use, with their numbers; methods of its own class may be followed."""

    known: Mapping[str, Any]
    owner: ast.ClassDef | None = None

    def value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        """The value of one expression, or NotArithmetic."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](self.value(node.left, names), self.value(node.right, names))
        if isinstance(node, ast.BoolOp):
            parts = [self.value(part, names) for part in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.value(node.operand, names)
        if isinstance(node, ast.IfExp):
            return self.value(node.body if self.value(node.test, names) else node.orelse, names)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.IsNot):
            return self.value(node.left, names) is not self.value(node.comparators[0], names)
        return self._leaf(node, names)

    def _leaf(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        """A name, an attribute by its last part, or a call by what it calls."""
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        called = node.func if isinstance(node, ast.Call) else node
        last = ast.unparse(called).rpartition(".")[2]
        if isinstance(node, ast.Call) and last == "int":
            return int(self.value(node.args[0], names))
        if last in self.known:
            return self.known[last]
        method = _method(self.owner, last) if isinstance(node, ast.Call) and self.owner else None
        returned = method.body[-1] if method else None
        if isinstance(returned, ast.Return) and returned.value is not None:
            return self.value(returned.value, {})
        raise NotArithmetic(ast.unparse(node))

    def run(self, body: list[ast.stmt], names: dict[str, Any]) -> dict[str, Any]:
        """The names after a block of assignments; statements that name nothing are passed over."""
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names[node.targets[0].id] = self.value(node.value, names)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names[node.target.id] = ARITHMETIC[type(node.op)](names[node.target.id], self.value(node.value, names))
        return names


def _method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def geometry(element_bytes: int, **known: Any) -> dict[str, Any]:
    """The numbers of an 80-layer GQA model with 8 KV heads of 128 on one rank."""
    return {
        "get_num_kv_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "v_head_dim": HEAD_DIM,
        "num_layers": LAYERS,
        "effective_num_layers": LAYERS,
        "kv_size": element_bytes,
        "_element_size": element_bytes,
        "element_size": 1,
        "head_num": KV_HEADS,
        "SCALE_BLOCK_SIZE": 16,
        **known,
    }


def read(tree: Tree, words: tuple[str, ...]) -> list[Fact]:
    """Bytes per token of every cache dtype of this release that the formula decides; `words` are its flag values."""
    facts = []
    sized = _sizing_branch(tree)
    if sized:
        path, before, branch = sized
        for word in words:
            if word == "fp4_e2m1" and "nvfp4" in words:
                continue  # still a choice, but resolving it raises
            facts += [fact for fact in _of_branch(path, before, branch, word) if fact]
    return facts + list(_of_methods(tree, words))


def _sizing_branch(tree: Tree) -> tuple[str, list[ast.stmt], ast.If] | None:
    """The branch for FP4 in the sizing of plain attention: its file, the statements before it, and itself."""
    found = None
    for path in SIZING_FILES:
        if found is None and tree.has(path):
            for node in ast.walk(tree.module_at(path).tree):
                for before, item in _fp4_branches(node):
                    if found is None or item.lineno > found[2].lineno:
                        found = (path, before, item)
    return found


def _fp4_branches(node: ast.AST) -> Iterator[tuple[list[ast.stmt], ast.If]]:
    """Conditions on the FP4 dtype among a node's statements, where the size of plain attention stands before them."""
    for body in _bodies(node):
        for position, item in enumerate(body):
            before = _text(body[:position])
            if (
                isinstance(item, ast.If)
                and "is_float4_e2m1fn_x2" in ast.unparse(item.test)
                and "head_dim" in before
                and "kv_lora" not in before
            ):
                yield body[:position], item


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _text(body: list[ast.stmt]) -> str:
    return "\n".join(ast.unparse(node) for node in body)


def _of_branch(path: str, before: list[ast.stmt], branch: ast.If, word: str) -> Iterator[Fact | None]:
    """The bytes of one flag word in the sizing function; FP4 and MXFP8 have branches of their own."""
    fp4 = word in ("fp4_e2m1", "fp4_mx_block16", "nvfp4")
    element = 2 if word in ("auto", "bf16", "bfloat16") else 1
    formula = Formula(geometry(element))
    tail = list(_assignments(before))[-2:]
    try:
        names = _tail(formula, tail)
        node: ast.stmt | ast.expr = tail[-1]
        if fp4:
            names, node = formula.run(branch.body, names), _scale_term(branch)
        elif word == "mxfp8":
            other = branch.orelse[0] if branch.orelse else None
            if not isinstance(other, ast.If) or "mxfp8" not in ast.unparse(other.test):
                return
            names, node = formula.run(other.body, names), other
    except NotArithmetic:
        return
    if word == "nvfp4":
        for arch in ("sm120", "sm100"):
            yield Fact(f"bytes_per_token.nvfp4.{arch}.flashinfer_prefill", names["cell_size"], path, node.lineno)
    elif word not in ("auto", "bfloat16", "fp8_e5m2"):
        yield Fact(f"bytes_per_token.{word}", names["cell_size"], path, node.lineno)


def _tail(formula: Formula, body: list[ast.Assign]) -> dict[str, Any]:
    """The names after the last assignments before the branch, those that are arithmetic."""
    names: dict[str, Any] = {}
    for node in body:
        try:
            formula.run([node], names)
        except NotArithmetic:
            continue
    if "cell_size" not in names:
        raise NotArithmetic("cell_size")
    return names


def _assignments(body: list[ast.stmt]) -> Iterator[ast.Assign]:
    """The assignments of a block; of a condition (a hybrid model, in some releases) those of its last `else`."""
    for node in body:
        if isinstance(node, ast.Assign):
            yield node
        elif isinstance(node, ast.If):
            yield from _assignments(node.orelse)


def _scale_term(branch: ast.If) -> ast.stmt | ast.expr:
    """The term that adds the block scales."""
    terms = [
        n
        for item in branch.body
        for n in in_order(item, ast.BinOp)
        if isinstance(n.op, ast.FloorDiv) and "scale_block" in ast.unparse(n.right)
    ]
    return terms[-1] if terms else branch


SCENARIOS = {
    ("nvfp4", "sm120.flashinfer_prefill"): {"dequant": True, "native_layout": False},
    ("nvfp4", "sm100.flashinfer_prefill"): {"dequant": True, "native_layout": True},
    ("nvfp4", "sm100.trtllm_mha_prefill"): {"dequant": False, "native_layout": True},
    ("fp4_mx_block16", ""): {"dequant": False, "native_layout": False},
}
METHOD_CLASSES = {"nvfp4": "NVFP4KVCacheMethod", "fp4_mx_block16": "FP4MXBlock16KVCacheMethod"}


def _of_methods(tree: Tree, words: tuple[str, ...]) -> Iterator[Fact]:
    """The bytes that a quantisation method counts itself, in releases whose sizing function asks it (0.5.21 on)."""
    if not tree.has(CONFIGURATOR) or "quant_method.compute_cell_size" not in tree.text(CONFIGURATOR):
        return
    for (word, scenario), given in SCENARIOS.items():
        owner = definition(tree, FP4_METHODS, METHOD_CLASSES[word])
        function = _method(owner, "compute_cell_size") if isinstance(owner, ast.ClassDef) else None
        if word not in words or function is None or not isinstance(owner, ast.ClassDef):
            continue
        known = geometry(
            1,
            needs_dequant_workspace=given["dequant"],
            has_native_fp4_access=True,
            use_trtllm_gen_native_scale_layout=given["native_layout"],
            dequant_workspace_dtype="fp8_e4m3" if given["dequant"] else None,
        )
        formula = Formula(known, owner)
        try:
            names = formula.run(function.body[:-1], dict(known))
            returned = function.body[-1]
            if not isinstance(returned, ast.Return) or returned.value is None:
                continue
            value = formula.value(returned.value, names)
        except NotArithmetic:
            continue
        yield Fact(".".join(filter(None, ("bytes_per_token", word, scenario))), value, FP4_METHODS, function.lineno)
