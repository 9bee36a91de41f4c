"""The environment a verdict takes for granted: a table in YAML, and the record of which entries were used."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nvdash.extract.values import Stub, Unknown

DATA = Path(__file__).with_name("assumptions.yaml")
DTYPES = {
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "half",
    "float",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "bool",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float4_e2m1fn_x2",
}


@cache
def rows() -> tuple[Mapping[str, Any], ...]:
    """The rows of assumptions.yaml."""
    from nvdash.readers.yaml_rows import read_rows

    return tuple(read_rows(DATA))


class Assumptions:
    """The table filled in for one cell: what calls return and what values and attributes are."""

    def __init__(self, axes: Mapping[str, Any]) -> None:
        self.axes = axes
        self.read: set[str] = set()
        """The axes that answers were filled from; a remembered value holds only while they stay the same."""
        self._calls: dict[str, tuple[str, Any]] = {}
        self._values: dict[str, tuple[str, Any]] = {}
        self._attributes: dict[str, tuple[str, Any]] = {}
        self._cases: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        for row in rows():
            for table, store in (("calls", self._calls), ("values", self._values), ("attributes", self._attributes)):
                for name, value in row.get(table, {}).items():
                    store[name] = (row["id"], value)
            for case in row.get("cases", []):
                self._cases.setdefault(case["call"], []).append((row["id"], case))
        self._prefixes = {name[:i] for name in self._attributes for i, c in enumerate(name) if c == "."}

    def assume(self, identifier: str, calls: Mapping[str, Any]) -> None:
        """Answer more calls under one id, beside the table."""
        self._calls |= {name: (identifier, value) for name, value in calls.items()}

    def call(self, name: str, args: list[Any], used: set[str]) -> tuple[bool, Any]:
        """Whether the table answers this call, and its answer."""
        if name in self._cases:
            return self._case(name, args, used)
        return self._look(self._calls, name, used)

    def value(self, name: str, used: set[str]) -> tuple[bool, Any]:
        """Whether the table fixes this name, and its value."""
        return self._look(self._values, name, used)

    def attribute(self, path: str, used: set[str]) -> Any:
        """An attribute of a stand-in object; a known prefix is another stand-in, the rest is unknown."""
        known, value = self._look(self._attributes, path, used)
        if known:
            return value
        if f"{path}()" in self._attributes:
            return Stub(f"{path}()")
        return Stub(path) if path in self._prefixes else Unknown(path)

    def stub_call(self, stub: Stub, used: set[str]) -> Any:
        """What calling a stand-in's method returns."""
        known, value = self._look(self._attributes, stub.path, used)
        return value if known else Unknown(f"{stub.path}()")

    def is_dtype(self, name: str) -> bool:
        return name in DTYPES

    def _look(self, table: Mapping[str, tuple[str, Any]], name: str, used: set[str]) -> tuple[bool, Any]:
        entry = table.get(name)
        if entry is None:
            return False, None
        value = self._filled(entry[1])
        if not isinstance(value, Unknown):
            used.add(entry[0])
        return True, value

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            self.read.add(value[1:])
            return self.axes.get(value[1:], Unknown(value))
        return list(value) if isinstance(value, list) else value

    def _case(self, name: str, args: list[Any], used: set[str]) -> tuple[bool, Any]:
        self.read.add("capability")
        major = self.axes["capability"].major
        for identifier, case in self._cases[name]:
            if "argument" in case and (not args or args[0] != case["argument"]):
                continue
            if "major" in case and major not in case["major"]:
                continue
            used.add(identifier)
            return True, case["returns"]
        return False, None
