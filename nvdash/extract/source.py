"""An unpacked source tree of a released framework: its files, modules and classes, never imported."""

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError

MAX_FILE_BYTES = 8_000_000

Guard = tuple[ast.expr, bool]
"""A module-level condition and whether the definition sits in its true branch."""


class ExtractError(NvdashError):
    """A source tree that cannot be read as the framework it should be."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One module-level binding of a name, with the conditions it stands under."""

    node: ast.stmt
    guards: tuple[Guard, ...] = ()
    optional: bool = False
    """True inside a `try` whose handler offers another definition."""


@dataclass(slots=True)
class Module:
    """A parsed file and the names it binds at its top level."""

    name: str
    path: str
    tree: ast.Module
    is_package: bool
    names: dict[str, list[Definition]] = field(default_factory=dict)

    def last(self, name: str, kind: type | tuple[type, ...] = ast.stmt) -> Any | None:
        """The last top-level definition of `name` of that kind of statement, or None."""
        nodes = [d.node for d in self.names.get(name, []) if isinstance(d.node, kind)]
        return nodes[-1] if nodes else None


class Tree:
    """A source tree, read on demand; paths are relative to its top folder."""

    def __init__(self, root: Path, release: str, package: str = "vllm") -> None:
        self.root, self.release, self.package = root, release, package
        self._modules: dict[str, Module | None] = {}
        if not (root / package).is_dir():
            raise ExtractError(
                str(root),
                f"a source tree with a folder {package}/",
                "no such folder in it",
                f"unpack the sdist of {package} and pass its top folder",
            )

    def text(self, path: str) -> str:
        """The text of one file, refused when it is missing, huge or not UTF-8."""
        full = self.root / path
        if not full.is_file():
            raise ExtractError(
                f"{self.release} {path}",
                "a file that this release ships",
                "no such file",
                "the sdist may be truncated, or the release moved it: map it in paths.yaml",
            )
        if full.stat().st_size > MAX_FILE_BYTES:
            raise ExtractError(f"{self.release} {path}", f"at most {MAX_FILE_BYTES} bytes", "a larger file")
        try:
            return full.read_text(encoding="utf-8")
        except UnicodeDecodeError as exc:
            raise ExtractError(f"{self.release} {path}", "UTF-8 text", f"byte {exc.start} is not UTF-8") from exc

    def has(self, path: str) -> bool:
        return (self.root / path).is_file()

    def module_path(self, name: str) -> str | None:
        """The file of a dotted module name inside the package, or None when the tree has none."""
        base = name.replace(".", "/")
        for candidate in (f"{base}.py", f"{base}/__init__.py"):
            if self.has(candidate):
                return candidate
        return None

    def module(self, name: str) -> Module | None:
        """The parsed module, or None when it is not part of this tree."""
        if name not in self._modules:
            inside = name == self.package or name.startswith(f"{self.package}.")
            path = self.module_path(name) if inside else None
            self._modules[name] = self._parse(name, path) if path else None
        return self._modules[name]

    def module_at(self, path: str) -> Module:
        """The parsed module at a path that must exist."""
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = self.module(name)
        if module is None:
            self.text(path)
            raise ExtractError(f"{self.release} {path}", f"a module of {self.package}", "a file outside the package")
        return module

    def _parse(self, name: str, path: str) -> Module:
        try:
            parsed = ast.parse(self.text(path))
        except (SyntaxError, ValueError) as exc:
            line = getattr(exc, "lineno", None) or 0
            raise ExtractError(
                f"{self.release} {path}:{line}",
                "Python source",
                f"a syntax error ({exc})",
                "the sdist may be truncated; fetch it again",
            ) from exc
        module = Module(name, path, parsed, path.endswith("__init__.py"))
        _collect(parsed.body, module.names, (), False)
        return module


def _collect(
    body: list[ast.stmt], names: dict[str, list[Definition]], guards: tuple[Guard, ...], optional: bool
) -> None:
    """Index what each statement binds, following conditions, `try` and `with`."""
    for node in body:
        if isinstance(node, ast.If):
            if not _is_type_checking(node.test):
                _collect(node.body, names, (*guards, (node.test, True)), optional)
                _collect(node.orelse, names, (*guards, (node.test, False)), optional)
            else:
                _collect(node.orelse, names, guards, optional)
        elif isinstance(node, ast.Try):
            for handler in node.handlers:
                _collect(handler.body, names, guards, True)
            _collect([*node.body, *node.orelse], names, guards, optional or bool(node.handlers))
        elif isinstance(node, ast.With):
            _collect(node.body, names, guards, optional)
        else:
            for name in bound_names(node):
                names.setdefault(name, []).append(Definition(node, guards, optional))


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test).endswith("TYPE_CHECKING")


def bound_names(node: ast.stmt) -> list[str]:
    """The names that one statement binds in its own scope."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.For) or (isinstance(node, ast.AnnAssign) and node.value is not None):
        targets = [node.target]
    names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]


def absolute_module(module: Module, node: ast.ImportFrom) -> str:
    """The dotted module an import statement names, relative imports resolved."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + (1 if module.is_package else 0)]
    return ".".join([*parts, node.module] if node.module else parts)


def literal(node: ast.expr | None) -> Any:
    """The value of a literal expression; a ValueError says that it is not one."""
    if node is None:
        raise ValueError("no expression")
    return ast.literal_eval(node)
