"""Where names and attributes of the interpreted source come from: frames, modules, classes, objects."""

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nvdash.extract import operations
from nvdash.extract.source import Definition, Module, absolute_module, bound_names
from nvdash.extract.values import (
    Bound,
    Capability,
    ClassRef,
    EnumMember,
    FunctionRef,
    Instance,
    ModuleRef,
    Native,
    Stub,
    Super,
    Symbol,
    Unknown,
)

if TYPE_CHECKING:
    from nvdash.extract.frames import Frame
    from nvdash.extract.interp import Interpreter

BUILTINS: dict[str, Callable[..., Any]] = {
    "len": len,
    "any": any,
    "all": all,
    "min": min,
    "max": max,
    "int": int,
    "str": str,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "set": set,
    "dict": dict,
    "frozenset": frozenset,
    "range": range,
    "sorted": sorted,
    "abs": abs,
    "sum": sum,
    "enumerate": lambda *a: list(enumerate(*a)),
    "zip": lambda *a: list(zip(*a, strict=False)),
    "reversed": lambda a: list(reversed(a)),
    "float": float,
    "round": round,
    "print": lambda *a, **k: None,
    "getattr": getattr,
    "hasattr": hasattr,
    "isinstance": isinstance,
    "setattr": setattr,
    "cast": lambda kind, value: value,
}
OPTIONAL_IMPORTS = "optional_imports_present"
ENUM_BASES = {"Enum", "IntEnum", "StrEnum", "IntFlag", "Flag"}


class Scope:
    """Name and attribute lookup for one interpreter."""

    def __init__(self, interpreter: "Interpreter") -> None:
        self.run = interpreter
        self.tree, self.assumptions = interpreter.tree, interpreter.assumptions
        self._globals: dict[tuple[str, str], Any] = {}
        self._chains: dict[ClassRef, tuple[list[ClassRef], list[str]]] = {}
        self._members: dict[ClassRef, dict[str, list[ast.stmt]]] = {}
        self._resolving: set[tuple[str, str]] = set()
        self._found: dict[tuple[ClassRef, str, ClassRef | None], tuple[ClassRef, ast.stmt] | None] = {}
        self._decorated: dict[ast.FunctionDef, frozenset[str]] = {}

    # Names

    def name(self, name: str, frame: "Frame") -> Any:
        inner: Frame | None = frame
        while inner is not None:
            if name in inner.names:
                return inner.names[name]
            inner = inner.outer
        return self.module_name(frame.module, name)

    def module_name(self, module: Module, name: str) -> Any:
        """The value a module-level name has, assumed or evaluated once."""
        known, value = self.assumptions.value(name, self.run.used)
        if known:
            return value
        key = (module.name, name)
        if key in self._globals:
            return self._globals[key]
        if key in self._resolving:
            return Unknown(f"{module.name}.{name}")
        self._resolving.add(key)
        before = len(self.run.decided)
        try:
            value = self._resolve(module, name)
        finally:
            self._resolving.discard(key)
        if len(self.run.decided) == before:
            self._globals[key] = value
        return value

    def _resolve(self, module: Module, name: str) -> Any:
        for definition in reversed(module.names.get(name, [])):
            if self._guards_allow(module, definition):
                if definition.optional:
                    self.run.used.add(OPTIONAL_IMPORTS)
                return self._defined(module, name, definition)
        if name in BUILTINS and name not in module.names:
            return Native(BUILTINS[name], name)
        submodule = self.tree.module(f"{module.name}.{name}") if module.is_package else None
        if submodule:
            return ModuleRef(submodule.name)
        return self._environment_default(module, name)

    def _environment_default(self, module: Module, name: str) -> Any:
        """The default that `vllm/envs.py` declares for a variable nobody set."""
        if module.name.endswith(".envs"):
            for node in ast.walk(module.tree):
                if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value is not None:
                    self.run.used.add("environment_unset")
                    return self.run.evaluate(node.value, self._frame(module))
        return Unknown(name)

    def _guards_allow(self, module: Module, definition: Definition) -> bool:
        for test, expected in definition.guards:
            holds = operations.truth(self.run.evaluate(test, self._frame(module)))
            if not isinstance(holds, Unknown) and bool(holds) != expected:
                return False
        return True

    def _frame(self, module: Module) -> "Frame":
        from nvdash.extract.frames import Frame

        return Frame(module, {}, 1)

    def _defined(self, module: Module, name: str, definition: Definition) -> Any:
        node = definition.node
        if isinstance(node, ast.ClassDef):
            return ClassRef(module, node)
        if isinstance(node, ast.FunctionDef):
            return FunctionRef(module, node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return dict(self.imported(node, module)).get(name, Unknown(name))
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            frame = self._frame(module)
            self.assign(
                node.targets[0] if isinstance(node, ast.Assign) else node.target,
                self.run.evaluate(node.value, frame),
                frame,
            )
            return frame.names.get(name, Unknown(name))
        return Unknown(name)

    def imported(self, node: ast.Import | ast.ImportFrom, module: Module) -> Iterator[tuple[str, Any]]:
        """What an import statement binds."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                target = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or target, self._module_value(target)
            return
        source = absolute_module(module, node)
        for alias in node.names:
            yield alias.asname or alias.name, self._from(source, alias.name)

    def _module_value(self, name: str) -> Any:
        return ModuleRef(name) if self.tree.module(name) else Unknown(name)

    def _from(self, source: str, name: str) -> Any:
        known, value = self.assumptions.value(name, self.run.used)
        if known:
            return value
        found = self.tree.module(source)
        if found is None:
            return Native(BUILTINS["cast"], "cast") if name == "cast" else Unknown(f"{source}.{name}")
        if name not in found.names and self.tree.module(f"{source}.{name}"):
            return ModuleRef(f"{source}.{name}")
        return self.module_name(found, name)

    # Classes

    def chain(self, owner: ClassRef) -> tuple[list[ClassRef], list[str]]:
        """The class and its known bases, nearest first, and the names of bases that are not in the tree."""
        if owner not in self._chains:
            chain, foreign = [owner], []
            for base in owner.node.bases:
                expression = base.value if isinstance(base, ast.Subscript) else base
                value = self.run.evaluate(expression, owner.closure or self._frame(owner.module))
                if isinstance(value, ClassRef):
                    above, unknown = self.chain(value)
                    chain.extend(item for item in above if item not in chain)
                    foreign.extend(unknown)
                else:
                    foreign.append(ast.unparse(expression))
            self._chains[owner] = chain, foreign
        return self._chains[owner]

    def members(self, owner: ClassRef) -> dict[str, list[ast.stmt]]:
        """The statements of a class body by the names they bind."""
        if owner not in self._members:
            names: dict[str, list[ast.stmt]] = {}
            for node in owner.node.body:
                for name in bound_names(node):
                    names.setdefault(name, []).append(node)
            self._members[owner] = names
        return self._members[owner]

    def find(self, owner: ClassRef, name: str, after: ClassRef | None = None) -> tuple[ClassRef, ast.stmt] | None:
        """The nearest class that binds `name` (after one of them, for `super()`), and its statement."""
        key = (owner, name, after)
        if key not in self._found:
            self._found[key] = self._search(owner, name, after)
        return self._found[key]

    def _search(self, owner: ClassRef, name: str, after: ClassRef | None) -> tuple[ClassRef, ast.stmt] | None:
        chain = self.chain(owner)[0]
        start = chain.index(after) + 1 if after in chain else 0
        for cls in chain[start:]:
            nodes = self.members(cls).get(name)
            if nodes:
                getter = [n for n in nodes if not isinstance(n, ast.FunctionDef) or not _is_setter(n)]
                return cls, getter[-1] if getter else nodes[-1]
        return None

    def is_enum(self, owner: ClassRef) -> bool:
        return bool(ENUM_BASES & {base.rpartition(".")[2] for base in self.chain(owner)[1]})

    def class_attribute(
        self, owner: ClassRef, name: str, receiver: Any, depth: int, after: ClassRef | None = None
    ) -> Any:
        """An attribute looked up on a class; methods come back bound to `receiver`."""
        found = self.find(owner, name, after)
        if found is None:
            return Unknown(f"{owner.name}.{name}")
        cls, node = found
        if isinstance(node, ast.FunctionDef):
            decorators = self._decorators(node)
            function = FunctionRef(cls.module, node, cls, cls.closure)
            if "staticmethod" in decorators:
                return function
            if "classmethod" in decorators:
                return Bound(function, receiver.owner if isinstance(receiver, Instance) else receiver)
            if decorators & {"property", "cached_property"} and not isinstance(receiver, ClassRef):
                return self.run.call(Bound(function, receiver), [], {}, depth + 1)
            return Bound(function, receiver) if not isinstance(receiver, ClassRef) else function
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value = self.run.evaluate(node.value, self._class_frame(cls))
            return self._enum_member(cls, name, value) if self.is_enum(owner) else value
        if isinstance(node, ast.ClassDef):
            return ClassRef(cls.module, node, cls.closure)
        return Unknown(f"{owner.name}.{name}")

    def _decorators(self, node: ast.FunctionDef) -> frozenset[str]:
        if node not in self._decorated:
            self._decorated[node] = frozenset(ast.unparse(d).rpartition(".")[2] for d in node.decorator_list)
        return self._decorated[node]

    def _class_frame(self, cls: ClassRef) -> "Frame":
        """A frame in which a class-level expression sees the names bound beside it."""
        from nvdash.extract.frames import Frame

        frame = Frame(cls.module, {}, 1, outer=cls.closure)
        for name, nodes in self.members(cls).items():
            if isinstance(nodes[-1], ast.Assign) and isinstance(nodes[-1].value, ast.Constant):
                frame.names[name] = nodes[-1].value.value
        return frame

    def _enum_member(self, cls: ClassRef, name: str, value: Any) -> EnumMember:
        if isinstance(value, Unknown) and value.why.endswith("auto()"):
            value = list(self.members(cls)).index(name) + 1
        bases = {base.rpartition(".")[2] for base in self.chain(cls)[1]}
        return EnumMember(cls, name, value, bool(bases & {"str", "int", "IntEnum", "StrEnum", "IntFlag"}))

    def instantiate(self, owner: ClassRef, args: list[Any], kwargs: dict[str, Any], depth: int) -> Any:
        """An object of a class: its `__init__` is run, or its annotated fields are filled in order."""
        if owner.name == "DeviceCapability":
            values = [*args, *kwargs.values()]
            return Capability(*values) if len(values) == 2 else Unknown("DeviceCapability()")
        if self.is_enum(owner):
            members = [self.class_attribute(owner, n, owner, depth) for n in self.members(owner)]
            return next(
                (m for m in members if isinstance(m, EnumMember) and args and m.value == args[0]),
                Unknown(f"{owner.name}()"),
            )
        found = self.find(owner, "__init__")
        if found is None and self.chain(owner)[1] and not _is_record(owner, self.chain(owner)[1]):
            return Unknown(f"{owner.name}()")
        made = Instance(owner)
        if found:
            cls, node = found
            self.run.call(Bound(FunctionRef(cls.module, node, cls, cls.closure), made), args, kwargs, depth)  # type: ignore[arg-type]
        else:
            self._fill(made, args, kwargs)
        return made

    def _fill(self, made: Instance, args: list[Any], kwargs: dict[str, Any]) -> None:
        fields = [
            (cls, n)
            for cls in reversed(self.chain(made.owner)[0])
            for n in cls.node.body
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        ]
        for position, (cls, node) in enumerate(fields):
            name = ast.unparse(node.target)
            if position < len(args):
                made.attributes[name] = args[position]
            elif name in kwargs:
                made.attributes[name] = kwargs[name]
            elif node.value is not None:
                made.attributes[name] = self.run.evaluate(node.value, self._frame(cls.module))

    # Attributes

    def attribute(self, value: Any, name: str, depth: int) -> Any:
        if isinstance(value, ClassRef):
            return self._of_class(value, name, depth)
        if isinstance(value, Instance):
            return (
                value.attributes[name]
                if name in value.attributes
                else self._assumed_or(name, lambda: self.class_attribute(value.owner, name, value, depth))
            )
        if isinstance(value, Super):
            owner = value.receiver.owner if isinstance(value.receiver, Instance) else value.receiver
            if isinstance(owner, ClassRef):
                return self.class_attribute(owner, name, value.receiver, depth, value.owner)
        if isinstance(value, Stub):
            return self.assumptions.attribute(f"{value.path}.{name}", self.run.used)
        if isinstance(value, ModuleRef):
            return self._of_module(value, name)
        if isinstance(value, EnumMember):
            return (
                {"name": value.name, "value": value.value}[name]
                if name in ("name", "value")
                else self.class_attribute(value.owner, name, value, depth)
            )
        if isinstance(value, Capability) and name in ("major", "minor"):
            return getattr(value, name)
        if isinstance(value, Unknown):
            known, assumed = self.assumptions.value(name, self.run.used)
            dtype = value.why == "torch" and self.assumptions.is_dtype(name)
            return assumed if known else Symbol(f"torch.{name}") if dtype else Unknown(f"{value.why}.{name}")
        native = operations.method(value, name)
        if native is None and value is None:
            from nvdash.extract.frames import Raised

            raise Raised("AttributeError", f"None has no {name}", ("", 0))
        return native or Unknown(f"{type(value).__name__}.{name}")

    def _assumed_or(self, name: str, otherwise: Any) -> Any:
        known, value = self.assumptions.value(name, self.run.used)
        return value if known else otherwise()

    def _of_class(self, owner: ClassRef, name: str, depth: int) -> Any:
        if name == "__members__" and self.is_enum(owner):
            return {n: self.class_attribute(owner, n, owner, depth) for n in self.members(owner)}
        if name in ("__name__", "__qualname__"):
            return owner.name
        if name == "__module__":
            return owner.module.name
        return self._assumed_or(name, lambda: self.class_attribute(owner, name, owner, depth))

    def _of_module(self, module: ModuleRef, name: str) -> Any:
        submodule = f"{module.name}.{name}"
        found = self.tree.module(module.name)
        if found is not None and (name in found.names or not self.tree.module(submodule)):
            return self.module_name(found, name)
        return ModuleRef(submodule)

    def reflect(self, name: str, args: list[Any], frame: "Frame") -> Any:
        """getattr, hasattr, setattr and isinstance on values of the source."""
        if name == "isinstance":
            return self._is_instance(args[0], args[1])
        if not isinstance(args[1], str):
            return Unknown(f"{name}()")
        if name == "setattr":
            if isinstance(args[0], Instance):
                args[0].attributes[args[1]] = args[2]
            return None
        value = self.attribute(args[0], args[1], frame.depth)
        missing = (
            isinstance(value, Unknown)
            and isinstance(args[0], ClassRef | Instance)
            and not self.chain(args[0] if isinstance(args[0], ClassRef) else args[0].owner)[1]
        )
        if name == "hasattr":
            return not missing if not isinstance(value, Unknown) or missing else Unknown(f"hasattr {value.why}")
        return args[2] if missing and len(args) > 2 else value

    def _is_instance(self, value: Any, kinds: Any) -> Any:
        if isinstance(value, Unknown):
            return Unknown(f"isinstance {value.why}")
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            if isinstance(kind, Native) and isinstance(kind.function, type):
                if isinstance(operations.plain(value), kind.function):
                    return True
            elif isinstance(kind, ClassRef):
                if isinstance(value, Instance | EnumMember) and kind in self.chain(value.owner)[0]:
                    return True
            elif not isinstance(value, operations.PLAIN):
                return Unknown(f"isinstance {operations.shown(value)}")
        return False

    def subscript(self, value: Any, index: Any) -> Any:
        if isinstance(value, ClassRef):
            return (
                self.class_attribute(value, index, value, 0)
                if self.is_enum(value) and isinstance(index, str)
                else value
            )
        if isinstance(value, Capability) and index in (0, 1):
            return (value.major, value.minor)[index]
        if isinstance(value, list | tuple | dict | str) and not isinstance(index, Unknown):
            try:
                return value[operations.plain(index)]
            except (KeyError, IndexError, TypeError):
                return Unknown(f"[{operations.shown(index)}]")
        return Unknown(f"{getattr(value, 'why', value)}[{operations.shown(index)}]")

    def assign(self, target: ast.expr, value: Any, frame: "Frame") -> None:
        """Bind a name, an attribute of an object, an item of a dict, or a tuple of those."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            owner = self.run.evaluate(target.value, frame)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner, index = self.run.evaluate(target.value, frame), self.run.evaluate(target.slice, frame)
            if isinstance(owner, dict) and isinstance(index, str | int | tuple):
                owner[index] = value
        elif isinstance(target, ast.Tuple | ast.List):
            values = operations.items(value)
            for position, part in enumerate(target.elts):
                known = not isinstance(values, Unknown) and position < len(values)
                self.assign(part, values[position] if known else Unknown(ast.unparse(part)), frame)  # type: ignore[index]

    def bind_arguments(self, function: FunctionRef, frame: "Frame", args: list[Any], kwargs: dict[str, Any]) -> None:
        """Fill a function's parameters: given, assumed for a constructor, default, else unknown."""
        spec = function.node.args
        positional = [*spec.posonlyargs, *spec.args]
        values = list(args)
        bound_method = frame.receiver is not None and isinstance(function.node, ast.FunctionDef)
        if bound_method:
            values.insert(0, frame.receiver)
        defaults = dict(zip([a.arg for a in positional][::-1], spec.defaults[::-1], strict=False))
        defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None})
        outer = function.closure or self._frame(function.module)
        for position, parameter in enumerate([*positional, *spec.kwonlyargs]):
            name = parameter.arg
            if position < len(values) and position < len(positional):
                frame.names[name] = values[position]
            elif name in kwargs:
                frame.names[name] = kwargs[name]
            elif name in defaults:
                frame.names[name] = self.run.evaluate(defaults[name], outer)
            else:
                frame.names[name] = Unknown(name)
        if spec.vararg:
            frame.names[spec.vararg.arg] = tuple(values[len(positional) :])
        if spec.kwarg:
            taken = {a.arg for a in (*positional, *spec.kwonlyargs)}
            frame.names[spec.kwarg.arg] = {k: v for k, v in kwargs.items() if k not in taken}


def _is_setter(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(d).endswith(".setter") for d in node.decorator_list)


def _is_record(owner: ClassRef, foreign: list[str]) -> bool:
    return any("dataclass" in ast.unparse(d) for d in owner.node.decorator_list) or "NamedTuple" in foreign
