"""Defaults of a release that move capacity, and what `auto` becomes by the checkpoint's own cache scheme."""

import ast
from collections.abc import Iterator
from typing import Any

from nvdash.extract.context import Cell
from nvdash.extract.facts import memory_defaults
from nvdash.extract.frames import Place
from nvdash.extract.locate import find
from nvdash.extract.selector import Selector
from nvdash.extract.source import Tree
from nvdash.extract.statements import Atom, Reading, frozen
from nvdash.extract.values import FunctionRef

FILE = "defaults"
GRAPHS = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
PLANNERS = ("vllm/v1/core/kv_cache_planning.py", "vllm/v1/core/kv_cache_utils.py")
SCHEMES: dict[str, dict[str, Any]] = {
    "fp8": {"dynamic": False, "num_bits": 8, "type": "float"},
    "nvfp4": {"dynamic": False, "num_bits": 4, "type": "float"},
}
MODELOPT = ["modelopt", "modelopt_fp4", "modelopt_mixed"]
Found = tuple[str, Any, Place]


def defaults(selector: Selector, reading: Reading) -> None:
    """Add the named defaults and the meaning of `auto`."""
    for name, value, place in named(selector):
        reading.add(Atom(FILE, "default", frozen({"name": name, "value": value}), frozen({})), place)
    for scheme, becomes, place in resolved(selector):
        said = {"becomes": becomes}
        when = frozen({"checkpoint_kv": scheme, "method": MODELOPT})
        reading.add(Atom("resolve", "resolve", frozen(said), when, None, "auto"), place)
    for explicit, place in compressed_tensors(selector.tree):
        when = frozen({"checkpoint_kv": "fp8", "method": "compressed-tensors"})
        reading.add(
            Atom("resolve", "resolve", frozen({"becomes": "fp8"}), when, None, None if explicit else "auto"), place
        )


def named(selector: Selector) -> Iterator[Found]:
    """The defaults that a release states, those it does not have left out."""
    for fact in memory_defaults(selector):
        yield "gpu_memory_utilization", fact["value"], (fact["path"], fact["line"])
    module = selector.tree.module("vllm.envs")
    for node in ast.walk(module.tree) if module else ():
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == GRAPHS and node.value is not None:
            yield "cuda_graph_memory_in_budget", ast.literal_eval(node.value), (module.path, node.lineno)  # type: ignore[union-attr]
    yield from _group_factor(selector.tree)


def _group_factor(tree: Tree) -> Iterator[Found]:
    """The factor by which layer counts may differ before hybrid groups take the larger count."""
    for file in PLANNERS:
        for node in ast.walk(tree.module_at(file).tree) if tree.has(file) else ():
            if isinstance(node, ast.Compare) and ast.unparse(node.left) == "max_num_layers":
                right = node.comparators[0]
                if isinstance(right, ast.BinOp) and isinstance(right.right, ast.Constant):
                    yield "hybrid_group_size_factor", right.right.value, (file, node.lineno)
                    return


def resolved(selector: Selector) -> Iterator[Found]:
    """What `auto` becomes for a ModelOpt checkpoint with each cache scheme, by running the release's own function."""
    found = find(selector.tree, "checkpoint_cache_dtype")
    if found is None:
        return
    module, _, node = found
    run = selector.interpreter(Cell(90, "auto", 128))
    for scheme, config in SCHEMES.items():
        argument = {"quant_method": "modelopt", "kv_cache_scheme": config}
        values = {
            path.value if isinstance(path.value, str) or path.value is None else "?"
            for path in run.paths(FunctionRef(module, node), {node.args.args[0].arg: argument})
        }
        if values and "?" not in values and len(values) == 1:
            value = values.pop()
            yield scheme, "model_dtype" if value in (None, "auto") else value, (module.path, node.lineno)


def compressed_tensors(tree: Tree) -> Iterator[tuple[bool, Place]]:
    """Whether a layer of a checkpoint with a cache scheme turns `auto`, or any dtype, into fp8."""
    for file in ("vllm/model_executor/layers/attention/attention.py", "vllm/attention/layer.py"):
        for node in ast.walk(tree.module_at(file).tree) if tree.has(file) else ():
            if isinstance(node, ast.If) and "kv_cache_scheme is not None" in ast.unparse(node.test):
                sets = [
                    s for s in node.body if isinstance(s, ast.Assign) and ast.unparse(s) == "kv_cache_dtype = 'fp8'"
                ]
                if sets:
                    yield "auto" not in ast.unparse(node.test), (file, sets[0].lineno)
                    return
