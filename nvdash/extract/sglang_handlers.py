"""Where SGLang's source keeps its argument handlers and backend creation functions, release by release."""

import ast
from collections.abc import Callable, Iterator

from nvdash.extract.sglang_facts import OVERRIDES, REGISTRY, RUNNER, SRT
from nvdash.extract.source import ExtractError, Tree
from nvdash.extract.values import ClassRef, FunctionRef

PIPELINE = f"{SRT}/arg_groups/pipeline.py"

STEPS = (
    "handle_nvfp4_prefill_kv_dequant_dtype",
    "handle_attention_backend_compatibility",
    "handle_kv4_compatibility",
    "handle_mxfp8_kv_cache_compatibility",
    "handle_page_size",
    "page_size_default",
)
"""The handlers that decide attention backends and cache dtypes, under the names they had without leading `_`."""


def creators(tree: Tree) -> dict[str, FunctionRef]:
    """The functions registered under each backend's name (attention_registry.py, 0.5.3 on)."""
    if not tree.has(REGISTRY):
        return {}
    module = tree.module_at(REGISTRY)
    found = {}
    for node in (n for n in module.tree.body if isinstance(n, ast.FunctionDef)):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "register_attention_backend":
                found[ast.literal_eval(decorator.args[0])] = FunctionRef(module, undecorated(node))
    return found


def undecorated(node: ast.FunctionDef) -> ast.FunctionDef:
    """The function without its decorators, which registered or wrapped it."""
    bare = ast.FunctionDef(node.name, node.args, node.body, [], node.returns)
    return ast.copy_location(bare, node)


def class_of(tree: Tree, path: str, name: str) -> ast.ClassDef:
    """A class of one file by its name; a release without it is refused with what to map."""
    found = tree.module_at(path).last(name, ast.ClassDef)
    if not isinstance(found, ast.ClassDef):
        raise ExtractError(
            f"{tree.release} {path}",
            f"a class {name}",
            "no such class",
            "the release moved it: map it in nvdash/extract/sglang_facts.py",
        )
    return found


def steps(tree: Tree, record: ClassRef) -> Iterator[FunctionRef]:
    """The handlers of STEPS in the order this release calls them."""
    if tree.has(PIPELINE):
        module = tree.module_at(PIPELINE)
        order = module.last("run_resolution_pipeline", ast.FunctionDef)
        lookup: Callable[[str], FunctionRef | None] = lambda name: _imported(tree, order, name)  # noqa: E731
    else:
        order = _resolving_method(record.node)
        lookup = lambda name: _own(record, name)  # noqa: E731
    for call in _calls(order):
        name = _called(call)
        if name and name.lstrip("_") in STEPS:
            step = lookup(name)
            if step:
                yield step
    if tree.has(RUNNER) and not tree.has(OVERRIDES):
        module = tree.module_at(RUNNER)
        runner = module.last("ModelRunner", ast.ClassDef)
        legacy = _method(runner, "model_specific_adjustment") if runner else None
        if runner is not None and legacy is not None and _sets_backend(legacy):
            yield FunctionRef(module, legacy, ClassRef(module, runner))


def _resolving_method(record: ast.ClassDef) -> ast.FunctionDef | None:
    """The method of ServerArgs that calls most of the handlers: `__post_init__`, or the one it hands over to."""
    methods = [n for n in record.body if isinstance(n, ast.FunctionDef)]
    return max(methods, key=lambda m: sum((_called(c) or "").lstrip("_") in STEPS for c in _calls(m)), default=None)


def _sets_backend(node: ast.FunctionDef) -> bool:
    return "attention_backend =" in ast.unparse(node)


def _calls(node: ast.AST | None) -> list[ast.Call]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)] if node is not None else []
    return sorted(calls, key=lambda n: (n.lineno, n.col_offset))


def _called(call: ast.Call) -> str | None:
    """The handler a statement calls: `self._handle_x()`, `handle_x(args)`, or the one `run_hook` is given."""
    name = ast.unparse(call.func).rpartition(".")[2]
    if name in ("run_hook", "run_post_process_pass"):
        handed = call.args[0 if name == "run_hook" else 1]
        return handed.id if isinstance(handed, ast.Name) else None
    return name


def _imported(tree: Tree, function: ast.FunctionDef | None, name: str) -> FunctionRef | None:
    """A handler that the pipeline imports, at its top or inside."""
    nodes = [*ast.walk(tree.module_at(PIPELINE).tree)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            module = tree.module(node.module or "")
            found = module.last(name, ast.FunctionDef) if module else None
            if module and found:
                return FunctionRef(module, undecorated(found))
    return None


def _own(record: ClassRef, name: str) -> FunctionRef | None:
    node = _method(record.node, name)
    return FunctionRef(record.module, node, record) if node else None


def _method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name), None)
