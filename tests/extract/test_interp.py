"""The interpreter: known stays known, unknown never turns into yes or no."""

import ast
from pathlib import Path

import pytest

from nvdash.extract.assumptions import Assumptions
from nvdash.extract.context import Cell, axes_of
from nvdash.extract.interp import Interpreter
from nvdash.extract.operations import binary, compare, unary
from nvdash.extract.source import Tree
from nvdash.extract.values import Bound, ClassRef, EnumMember, FunctionRef, Instance, Unknown
from tests.extract import toy


def interpreter(tmp_path: Path, source: str, havoc: bool = False) -> tuple[Interpreter, object]:
    toy.write(tmp_path, {"vllm/__init__.py": "", "vllm/code.py": source})
    run = Interpreter(Tree(tmp_path, "1.0"), Assumptions(axes_of(Cell(120, "nvfp4", 128), None, None)), havoc)
    module = run.tree.module("vllm.code")
    assert module is not None
    return run, module


def outcomes(tmp_path: Path, source: str, havoc: bool = False, **arguments: object) -> list[object]:
    run, module = interpreter(tmp_path, source, havoc)
    function = FunctionRef(module, module.last("asked", ast.FunctionDef))
    return [path.raised.kind if path.raised else path.value for path in run.paths(function, dict(arguments))]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("mystery() and False", [False]),
        ("False and mystery()", [False]),
        ("mystery() or True", [True]),
        ("not (mystery() or True)", [False]),
        ("mystery() in [1, 2] or 3 in [3]", [True]),
        ("None is None and mystery is not None or True", [True]),
        ("'nvfp4'.startswith('nv') and 'x' not in ('y',)", [True]),
        ("any(size == 64 for size in [32, 64])", [True]),
        ("[s * 2 for s in range(4) if s % 2][1]", [6]),
        ("{'a': 1, **{'b': 2}}['b'] if len('ab') == 2 else 0", [2]),
        ("(1 < 2 < 3) == (7 // 2 == 3)", [True]),
    ],
)
def test_what_is_decided_stays_decided_beside_an_unknown(tmp_path, expression, expected):
    assert outcomes(tmp_path, f"def asked():\n    return {expression}\n") == expected


def test_an_unknown_condition_forks_and_both_outcomes_are_kept(tmp_path):
    source = "def asked():\n    if mystery():\n        return 'one'\n    return 'two'\n"
    assert sorted(map(str, outcomes(tmp_path, source))) == ["one", "two"]


def test_one_path_decides_the_same_unknown_only_once(tmp_path):
    source = """
    def asked():
        first = 1 if mystery() else 0
        second = 0 if not mystery() else 1
        return first == second
    """
    assert outcomes(tmp_path, source) == [True, True]


def test_an_unresolved_name_is_unknown_and_not_true(tmp_path):
    (value,) = outcomes(tmp_path, "from elsewhere import thing\n\ndef asked():\n    return thing.flag\n")
    assert isinstance(value, Unknown)
    assert value.why == "elsewhere.thing.flag"


def test_too_many_forks_end_as_unknown(tmp_path):
    lines = "\n".join(f"    if mystery_{n}():\n        total += {n}" for n in range(12))
    (value,) = outcomes(tmp_path, f"def asked():\n    total = 0\n{lines}\n    return total\n")
    assert isinstance(value, Unknown)
    assert "paths" in value.why


def test_with_havoc_a_block_that_cannot_leave_is_skipped_and_its_names_forgotten(tmp_path):
    source = """
    def asked():
        kept, changed = 1, 1
        if mystery():
            changed = 2
        if kept != 1:
            raise ValueError("never")
        return kept, changed
    """
    ((kept, changed),) = outcomes(tmp_path, source, havoc=True)
    assert kept == 1
    assert isinstance(changed, Unknown)


def test_with_havoc_a_raise_behind_an_unknown_condition_is_only_possible(tmp_path):
    source = """
    def asked():
        if mystery():
            raise ValueError("perhaps")
        return "fine"
    """
    assert sorted(outcomes(tmp_path, source, havoc=True)) == ["ValueError", "fine"]


def test_super_and_properties_follow_the_class_hierarchy(tmp_path):
    source = """
    class Top:
        limit = 4

        @classmethod
        def accepts(cls, size):
            return size <= cls.limit

        @property
        def double(self):
            return self.limit * 2

    class Middle(Top):
        pass

    class Bottom(Middle):
        limit = 8

        @classmethod
        def accepts(cls, size):
            return size != 5 and super().accepts(size)

    def asked():
        return Bottom.accepts(8), Bottom.accepts(5), Middle.accepts(8), Bottom().double
    """
    assert outcomes(tmp_path, source) == [(True, False, False, 16)]


def test_enum_members_compare_by_identity_and_string_enums_by_value(tmp_path):
    source = """
    from enum import Enum, auto

    class Mode(Enum):
        NONE = auto()
        FP8 = auto()

    class Kind(str, Enum):
        DECODER = "decoder"

    def asked(kind):
        return Mode.NONE == Mode.NONE, Mode.NONE == Mode.FP8, Mode.FP8.value, Kind.DECODER == kind, Mode(2).name
    """
    assert outcomes(tmp_path, source, kind="decoder") == [(True, False, 2, True, "FP8")]


def test_an_import_that_may_fail_is_assumed_to_succeed_and_that_is_noted(tmp_path):
    source = """
    try:
        import optional
        HAS = True
    except ImportError:
        HAS = False

    def asked():
        return HAS
    """
    run, module = interpreter(tmp_path, source)
    (path,) = run.paths(FunctionRef(module, module.last("asked")), {})
    assert path.value is True
    assert path.used == {"optional_imports_present"}


def test_raise_is_caught_by_a_handler_that_names_it_and_keeps_its_line(tmp_path):
    source = """
    def fails():
        raise NotImplementedError("no reader. Use another")

    def asked(which):
        if which:
            try:
                fails()
            except NotImplementedError:
                return "caught"
        fails()
    """
    run, module = interpreter(tmp_path, source)
    function = FunctionRef(module, module.last("asked"))
    assert run.paths(function, {"which": True})[0].value == "caught"
    (path,) = run.paths(function, {"which": False})
    assert (path.raised.message, path.raised.place) == ("no reader. Use another", ("vllm/code.py", 3))


def test_a_remembered_call_is_not_used_for_another_cache_dtype(tmp_path):
    source = """
    def stored():
        return get_current_vllm_config().cache_config.cache_dtype

    def asked():
        return stored()
    """
    run, module = interpreter(tmp_path, source)
    function = FunctionRef(module, module.last("asked"))
    assert run.paths(function, {})[0].value == "nvfp4"
    run.assumptions.axes = axes_of(Cell(120, "fp8", 128), None, None)
    assert run.paths(function, {})[0].value == "fp8"


def test_objects_of_dataclasses_and_constructors_carry_their_fields(tmp_path):
    source = """
    from dataclasses import dataclass

    @dataclass
    class Multiple:
        base: int
        step: int = 2

    class Holder:
        def __init__(self, size):
            self.size = size

    def asked():
        made = Multiple(16)
        return made.base, made.step, Holder(size=3).size, isinstance(made, Multiple), isinstance(made, Holder)
    """
    assert outcomes(tmp_path, source) == [(16, 2, 3, True, False)]


def test_each_path_starts_with_a_fresh_object(tmp_path):
    source = """
    class Builder:
        def __init__(self):
            if hasattr(self, "seen"):
                raise ValueError("left over")
            self.seen = True
            if mystery():
                return
    """
    run, module = interpreter(tmp_path, source)
    cls = ClassRef(module, module.last("Builder"))
    method = run.scope.class_attribute(cls, "__init__", Instance(cls), 0)
    assert isinstance(method, Bound)
    assert [path.raised for path in run.paths(method, {})] == [None, None]


def test_a_class_made_by_a_factory_sees_the_factory_arguments(tmp_path):
    source = """
    def make(limit):
        class Made:
            @classmethod
            def accepts(cls, size):
                return size <= limit
        return Made

    Small, Large = make(4), make(64)

    def asked():
        return Small.accepts(8), Large.accepts(8)
    """
    assert outcomes(tmp_path, source) == [(False, True)]


def test_environment_defaults_come_from_the_declarations_of_envs(tmp_path):
    toy.write(tmp_path, {"vllm/envs.py": "if TYPE_CHECKING:\n    VLLM_FORCED: bool = False\n"})
    source = "import vllm.envs as envs\n\ndef asked():\n    return envs.VLLM_FORCED\n"
    assert outcomes(tmp_path, source) == [False]


def test_enum_lookup_by_unknown_value_is_unknown(tmp_path):
    source = "from enum import Enum\n\nclass Mode(Enum):\n    A = 1\n\ndef asked():\n    return Mode(mystery())\n"
    (value,) = outcomes(tmp_path, source)
    assert not isinstance(value, EnumMember)


def test_an_undecided_operation_reads_as_source_does():
    heads = Unknown("query heads per rank")
    assert binary(ast.Mult(), heads, 2).why == "(query heads per rank * 2)"
    assert compare(ast.GtE(), heads, 2).why == "query heads per rank >= 2"
    assert unary(ast.USub(), heads).why == "-query heads per rank"
