"""Strict YAML: plain values that remember their lines, and every problem of a file at once.

YAML's surprises are refused instead of read: duplicate keys, aliases, tags, dates, and `no` as a
boolean. Reads events, not objects, so a hostile file costs its own size and nothing more.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, Problems, UsageError

MAX_BYTES = 32 * 2**20
MAX_DEPTH = 24


class Row(dict[str, Any]):
    """One mapping of a file, with the line of every key and the text of every unquoted value."""

    __slots__ = ("line", "lines", "texts")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.texts: dict[str, str] = {}


class YamlError(UsageError):
    """A place in a YAML file that cannot be used as it stands."""


def read_yaml(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """The value of one YAML file; mappings are `Row`s. Raises `Problems` with all of them."""
    try:
        content = path.read_bytes() if path.stat().st_size <= max_bytes else None
    except OSError as error:
        raise YamlError(str(path), "a readable YAML file", error.strerror or str(error)) from error
    if content is None:
        raise YamlError(str(path), f"at most {max_bytes:,} bytes", "a larger file")
    return parse_yaml(content, str(path))


def parse_yaml(content: bytes, where: str) -> Any:
    """The value of YAML text that came from `where`."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(where, "UTF-8 text", f"byte {error.start} is not", "save the file as UTF-8") from error
    return _Document(text, where).value()


def read_rows(path: Path) -> list[Row]:
    """The rows of a file that is one list of mappings; an empty file has none."""
    rows = read_yaml(path)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise YamlError(f"{path}:1", "a list of rows", f"got {kind_of(rows)}", "start every row with '- '")
    problems = [
        YamlError(f"{path} [{number}]", "a mapping", f"got {kind_of(row)}")
        for number, row in enumerate(rows)
        if not isinstance(row, Row)
    ]
    if problems:
        raise Problems(str(path), problems)
    return rows


def kind_of(value: Any) -> str:
    """How a person would call this value: "the number 0.1", "a list", "nothing"."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    return "a mapping" if isinstance(value, dict) else "a list"


class _Document:
    """Turns the events of one document into values and collects what is wrong on the way."""

    def __init__(self, text: str, where: str) -> None:
        import yaml

        self._yaml: Any = yaml
        self._loader: Any = yaml.CSafeLoader(text)
        self._where = where
        self._problems: list[NvdashError] = []

    def value(self) -> Any:
        yaml = self._yaml
        try:
            self._loader.get_event()
            if self._loader.check_event(yaml.StreamEndEvent):
                return None
            self._loader.get_event()
            whole = self._node("", 0)
            self._loader.get_event()
            self._refuse_second_document()
        except yaml.YAMLError as error:
            self._problems.append(self._syntax(error))
        finally:
            self._loader.dispose()
        if self._problems:
            raise Problems(self._where, self._problems)
        return whole

    def _refuse_second_document(self) -> None:
        event = self._loader.peek_event()
        if not isinstance(event, self._yaml.StreamEndEvent):
            self._problem(event, "", "one document", "a second one", "remove the '---' line")

    def _syntax(self, error: Any) -> NvdashError:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        return YamlError(f"{self._where}{line}", "valid YAML", str(said))

    def _problem(self, event: Any, key: str, expected: str, found: str, hint: str = "") -> None:
        line = event.start_mark.line + 1
        self._problems.append(YamlError(f"{self._where}:{line} {key}".rstrip(), expected, found, hint))

    def _node(self, key: str, depth: int) -> Any:
        event: Any = self._loader.get_event()
        yaml = self._yaml
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            self._problem(event, key, "a value written out", "an anchor or alias", "repeat the value")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, key)
        if isinstance(event, yaml.AliasEvent):
            return None
        if depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=event.start_mark)
        if event.tag and not event.implicit:
            self._problem(event, key, "a plain value", f"the tag {event.tag}", "remove the tag")
        if isinstance(event, yaml.SequenceStartEvent):
            return list(self._items(key, depth))
        return self._mapping(event, key, depth)

    def _items(self, key: str, depth: int) -> Iterator[Any]:
        number = 0
        while not self._loader.check_event(self._yaml.SequenceEndEvent):
            yield self._node(f"{key}[{number}]", depth + 1)
            number += 1
        self._loader.get_event()

    def _mapping(self, start: Any, key: str, depth: int) -> Row:
        row = Row(start.start_mark.line + 1)
        while not self._loader.check_event(self._yaml.MappingEndEvent):
            event = self._loader.get_event()
            name = self._key(event, key)
            full = f"{key}.{name}" if key else name
            if name in row:
                self._problem(event, full, "each key once", "a second one", f"the first is on line {row.lines[name]}")
            row.lines[name] = event.start_mark.line + 1
            inner = self._loader.peek_event()
            row[name] = self._node(full, depth + 1)
            if isinstance(inner, self._yaml.ScalarEvent) and not isinstance(row[name], str):
                row.texts[name] = inner.value
        self._loader.get_event()
        return row

    def _key(self, event: Any, key: str) -> str:
        if not isinstance(event, self._yaml.ScalarEvent):
            raise self._yaml.MarkedYAMLError(problem="a key that is not text", problem_mark=event.start_mark)
        if event.implicit[0] and self._tag(event) != "str":
            self._problem(event, key, "a key that is text", event.value, f'write "{event.value}":')
        return str(event.value)

    def _tag(self, event: Any) -> str:
        return str(self._loader.resolve(self._yaml.ScalarNode, event.value, event.implicit)).rpartition(":")[2]

    def _scalar(self, event: Any, key: str) -> Any:
        if event.tag:
            self._problem(event, key, "a plain value", f"the tag {event.tag}", "remove the tag")
            return None
        if not event.implicit[0]:
            return event.value
        tag = self._tag(event)
        if tag == "str":
            return event.value
        return self._typed(event, key, tag)

    def _typed(self, event: Any, key: str, tag: str) -> Any:
        text = event.value
        if tag == "null":
            return None
        if tag == "bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if tag in ("int", "float"):
            number = self._number(text)
            if number is not None:
                return number
        kind = {"bool": "a boolean", "timestamp": "a date"}.get(tag, "a special value")
        found = f"got {text}, which YAML reads as {kind}"
        self._problem(event, key, "quoted text or a plain value", found, f'write "{text}"')
        return None

    @staticmethod
    def _number(text: str) -> int | float | None:
        """Decimal numbers only; YAML's octal, sexagesimal, NaN and infinity are refused."""
        digits = text.lstrip("+-")
        if digits.isdecimal() and (digits == "0" or not digits.startswith("0")):
            return int(text)
        try:
            number = float(text)
        except ValueError:
            return None
        is_plain = "." in text or "e" in text.lower()
        return number if is_plain and abs(number) < float("inf") else None
