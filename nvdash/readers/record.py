"""What a file says in normal form: runs, quality rows, kernel rows, facts about a server.

Values are frozen and checked once, here: a number that cannot be what it claims is refused, a zero that stands for
"nothing was measured" becomes unknown, and texts lose what must not be kept (paths, addresses, control characters).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from nvdash.errors import UsageError
from nvdash.readers.fields import ALWAYS_SHOWN, FIELDS, LATENCIES

Value = str | int | float | bool | tuple[Any, ...] | Mapping[str, Any] | None
MAX_COUNT = 2**53
MAX_MEASURE = 1e18
MAX_TEXT = 300
MAX_READ = 4_096

_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
"""Control characters, and those that no reader sees but that hide or reorder what stands beside them."""
_ABSOLUTE = re.compile(r"^(?:[a-z][a-z0-9+.-]*://|/|~|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\)")
_SNAPSHOT = re.compile(r"models--([^/\\]+)--([^/\\]+)(?:[/\\]|$)")


class RecordError(UsageError):
    """A value in a result file that cannot be what it claims to be."""


@dataclass(frozen=True, slots=True)
class Run:
    """One benchmark run or row, flat; absent names are unknown."""

    values: Mapping[str, Value]

    def get(self, name: str) -> Value:
        """The value of a field, None when the file does not state it."""
        return self.values.get(name)

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON: what is stated, and null for the fields that everybody looks for."""
        shown = dict.fromkeys(ALWAYS_SHOWN) if "prefill" not in self.values else {}
        return {**shown, **{name: plain_json(value) for name, value in self.values.items()}}


@dataclass(frozen=True, slots=True)
class QualityRow:
    """One score of one task under one metric and filter."""

    task: str
    metric: str
    filter: str | None
    value: float
    stderr: float | None = None
    n_shot: int | None = None
    n_effective: int | None = None
    n_original: int | None = None
    higher_is_better: bool | None = None
    is_group: bool = False
    task_version: str | None = None
    chat_template_sha: str | None = None
    fewshot_as_multiturn: bool | None = None
    context: int | None = None
    """Context length of the task in tokens, where the task has one."""

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of a trace: how often it ran, and how long in all."""

    name: str
    calls: int
    time_us: float | None = None
    share_pct: float | None = None

    @property
    def order(self) -> float:
        """Where the row stands: the longest first, rows without a time last."""
        return -(self.time_us or 0.0)

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about a file or about one of its runs; it marks, it never changes a value."""

    code: str
    text: str
    run: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The remark as JSON."""
        return {"code": self.code, "text": self.text, "run": self.run}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a format reader found in one file."""

    runs: tuple[Run, ...] = ()
    quality: tuple[QualityRow, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    server: Mapping[str, Value] = field(default_factory=dict)
    warnings: tuple[Remark, ...] = ()


def plain_json(value: Any) -> Any:
    """Tuples and mappings as JSON knows them."""
    if isinstance(value, Mapping):
        return {key: plain_json(inner) for key, inner in value.items()}
    return [plain_json(inner) for inner in value] if isinstance(value, tuple | list) else value


def make_run(where: str, **stated: Any) -> Run:
    """A checked run from what a reader found; None is left out, an unknown name is our own mistake."""
    values = {name: checked(where, name, value) for name, value in stated.items() if value is not None}
    return Run(MappingProxyType({name: value for name, value in values.items() if value is not None}))


def checked(where: str, name: str, value: Any) -> Value:
    """One value in the form its field asks for, or a refusal that names the field."""
    if name in ("prefill", "decode") and isinstance(value, Run):
        return value.values
    kind = FIELDS[name].kind
    if kind == "text":
        return clean_model(value) if name in ("model", "tokenizer") else clean_text(value)
    if kind == "flag":
        return flag(value)
    number = to_number(value)
    if number is None:
        return None
    return _in_range(where, name, kind, number)


def _in_range(where: str, name: str, kind: str, number: float) -> Value:
    if kind == "rate" and number == math.inf:
        return "inf"
    if not math.isfinite(number) or abs(number) > MAX_MEASURE:
        raise RecordError(where, f"{name} as a finite number", f"found {number}")
    if number < 0 and kind != "signed":
        raise RecordError(where, f"{name} as zero or more", f"found {number}")
    if kind == "ratio" and number > 1:
        raise RecordError(where, f"{name} between 0 and 1", f"found {number}")
    if kind == "count":
        if number > MAX_COUNT or number != int(number):
            raise RecordError(where, f"{name} as a whole number up to 2^53", f"found {number}")
        return int(number)
    return number


THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
"""A comma that groups digits; any other one may be a decimal comma, which states no number here."""


def to_number(value: Any) -> float | int | None:
    """A number of a JSON value or of its text; None for anything that states no number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value if isinstance(value, float) or abs(value) < 10**25 else math.copysign(math.inf, value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if "," in text:
        if not THOUSANDS.fullmatch(text):
            return None
        text = text.replace(",", "")
    try:
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 25 else float(text)
    except ValueError:
        return None


def flag(value: Any) -> bool | None:
    """A yes or no of a JSON value or of its text; None when it is neither."""
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False}
    return words.get(str(value).strip().lower())


def clean_text(value: Any) -> str | None:
    """A short printable text; a path keeps only its last part."""
    text = _CONTROL_CHARACTERS.sub(" ", str(value)[:MAX_READ]).strip()
    if _ABSOLUTE.match(text):
        text = base_name(text)
    return text[:MAX_TEXT] or None


def clean_model(value: Any) -> str | None:
    """A model id; a path keeps its last part, a Hugging Face snapshot folder its repository id."""
    text = _CONTROL_CHARACTERS.sub(" ", str(value)[:MAX_READ]).strip()
    snapshot = _SNAPSHOT.search(text)
    if snapshot:
        return f"{snapshot[1]}/{snapshot[2]}"[:MAX_TEXT]
    if is_path(text):
        text = base_name(text)
    return text[:MAX_TEXT] or None


def is_path(text: str) -> bool:
    """Whether a model id is a place on somebody's machine."""
    return bool(_ABSOLUTE.match(text)) or text.count("/") > 1 or "\\" in text


def base_name(text: str) -> str:
    """The last part of a path or address."""
    return re.split(r"[/\\]", text.rstrip("/\\"))[-1].lstrip("~")


def only_measured(values: dict[str, Any], completed: Any) -> tuple[dict[str, Any], list[str]]:
    """The values without zeros that stand for "nothing was measured", and the names that lost one."""
    nothing = to_number(completed) == 0
    stated = [name for name, value in values.items() if value is not None and _is_metric(name)]
    zeros = [name for name in stated if nothing or to_number(values[name]) == 0]
    spreads = [name for name in values if name.endswith("_std_ms") and name.replace("_std_", "_mean_") in zeros]
    return {name: None if name in zeros or name in spreads else value for name, value in values.items()}, zeros


def _is_metric(name: str) -> bool:
    if name.split("_", 1)[0] in LATENCIES:
        return not name.endswith("_std_ms")
    return name.endswith(("_tok_s", "_rps")) and name != "request_rate_rps"
