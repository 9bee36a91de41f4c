"""The import rules of docs/architecture.md, read from the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = [
    {"errors"},
    {"formats"},
    {"targets"},
    {"readers"},
    {"footprint", "support", "tradeoffs"},
    {"smoke", "extract", "planner"},
    {"store"},
    {"answers"},
    {"cli", "ui"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
OWNED = {  # library: the only modules that may import it
    "yaml": {"readers"},
    "pydantic": {"readers"},
    "huggingface_hub": {"readers"},
    "torch": {"smoke"},
    "duckdb": {"store"},
    "filelock": {"store", "readers"},
    "click": {"cli"},
    "rich": {"cli"},
    "streamlit": {"ui"},
    "altair": {"ui"},
    "pandas": {"ui"},
    "starlette": {"rest"},
}
MODULES = sorted((ROOT / "nvdash").rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module name that a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def package(path: Path) -> str:
    parts = path.relative_to(ROOT / "nvdash").parts
    return parts[0].removesuffix(".py")


def test_every_module_has_a_place_in_the_order():
    assert {package(path) for path in MODULES} <= set(RANK) | {"__init__", "__main__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_back_along_the_line(path):
    here = package(path)
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "nvdash" and here in RANK:
            there = rest.partition(".")[0]
            allowed = there == here or there not in RANK or RANK[there] < RANK[here]
            assert allowed, f"{path.name} ({here}) imports {name}"
        elif top in OWNED:
            assert here in OWNED[top], f"{top} belongs to {OWNED[top]}, imported by {path.name}"


@pytest.mark.parametrize("path", sorted((ROOT / "pages").rglob("*.py")), ids=lambda path: path.stem)
def test_pages_choose_ask_and_show(path):
    allowed = {"streamlit", "nvdash.ui"}
    for name in imports(path):
        assert any(name == a or name.startswith(f"{a}.") for a in allowed), f"{path.name} imports {name}"


def test_torch_is_imported_inside_functions_only():
    for path in (ROOT / "nvdash" / "smoke").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert "torch" not in {n.partition(".")[0] for n in [*names, module]}, path


def test_no_page_sits_directly_in_pages():
    assert not list((ROOT / "pages").glob("*.py"))


def test_the_command_line_starts_without_the_heavy_libraries():
    code = (
        "import sys; from nvdash.cli import main, COMMANDS; from importlib import import_module\n"
        "[import_module(m) for m in COMMANDS.values()]\n"
        "print(sorted({'torch', 'pandas', 'altair', 'streamlit', 'duckdb', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
