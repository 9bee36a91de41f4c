"""What a release refuses before any backend is asked: unknown cache dtypes and the config's own validators."""

import ast

from nvdash.extract.context import PLAIN_HEAD, Cell
from nvdash.extract.frames import Path
from nvdash.extract.locate import require
from nvdash.extract.selector import Selector
from nvdash.extract.statements import Atom, Reading, frozen
from nvdash.extract.values import Bound, ClassRef, FunctionRef, Stub

FILE = "cache_dtypes"
SUBJECT = "cache_dtype"


def unknown_words(values: list[str], path: str, line: int, reading: Reading) -> None:
    """A cache dtype that the release's flag does not know."""
    said = {"verdict": "refused", "layer": "config", "reason": "--kv-cache-dtype does not know this value"}
    atom = Atom(FILE, "support", frozen(said), frozen({"kv_cache_dtype": {"not": values}}))
    reading.add(atom, (path, line))


def validators(selector: Selector, values: list[str], reading: Reading) -> None:
    """Cache dtypes that `VllmConfig` itself refuses, by running its validators."""
    module, _, node = require(selector.tree, "vllm_config")
    owner = ClassRef(module, node)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and _is_about_cache_dtypes(method):
            for mla in (False, True):
                for dtype in values:
                    _check(
                        selector, FunctionRef(module, method, owner), Cell(90, dtype, PLAIN_HEAD[mla], mla=mla), reading
                    )


def _is_about_cache_dtypes(method: ast.FunctionDef) -> bool:
    names = {node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute)}
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(method))
    return raises and SUBJECT in names and any("model_validator" in ast.unparse(d) for d in method.decorator_list)


def _check(selector: Selector, method: FunctionRef, cell: Cell, reading: Reading) -> None:
    run = selector.interpreter(cell, havoc=True)
    paths = run.paths(Bound(method, Stub("vllm_config")), {})
    if not all(path.raised for path in paths):
        return
    first: Path = paths[0]
    if first.raised is None:
        return
    said = {"verdict": "refused", "layer": "config", "reason": f"VllmConfig.{method.name} raises {first.raised.kind}"}
    when = frozen({"mla": True if cell.mla else None})
    used = frozenset().union(*(path.used for path in paths))
    atom = Atom(FILE, "support", frozen(said), when, None, cell.kv_cache_dtype)
    reading.add(atom, first.raised.place, used)
