"""Facts out of messages: a table of patterns, how repeated values are merged, and flags in their three spellings."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nvdash.readers.aliases import controls
from nvdash.readers.record import to_number


@dataclass(frozen=True, slots=True)
class Pattern:
    """One message: a literal that must be in it, and the named groups that it states."""

    literal: str
    regex: re.Pattern[str]


def patterns(*rows: tuple[str, str]) -> tuple[Pattern, ...]:
    """Compiled patterns from pairs of literal and regular expression."""
    return tuple(Pattern(literal, re.compile(regex)) for literal, regex in rows)


MERGE_MIN = frozenset(
    {
        "kv_tokens",
        "max_concurrency",
        "available_kv_gib",
        "available_min_bytes",
        "kv_pool_bytes",
        "num_blocks",
        "free_min_gib",
        "avail_after_pool_min_gib",
        "kv_allocated_gib",
    }
)
"""The smallest value of all ranks counts."""
MERGE_MAX = frozenset(
    {"weights_profile", "weights_loaded", "cuda_graph_gib", "cuda_graph_estimated_gib", "peak_activation_gib"}
)
"""The largest value of all ranks counts."""


TEXTS = frozenset(
    "version version_server version_engine version_banner flashinfer_version compute_capability arch model_banner"
    " model_loaded kv_stored kv_record q_dtype_prefill q_dtype_decode decode_path prefill_dequant_dtype".split()
)
"""Facts that stay texts, also where they look like numbers."""


class Facts:
    """What the messages said so far; the first value stays, except where the ranks are merged."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def add(self, name: str, value: Any) -> None:
        """Take a value in, merged with what other ranks said."""
        if value is None:
            return
        known = self.values.get(name)
        if known is None:
            self.values[name] = value
        elif name in MERGE_MIN:
            self.values[name] = min(known, value)
        elif name in MERGE_MAX:
            self.values[name] = max(known, value)

    def latest(self, name: str, value: Any) -> None:
        """Take a value in that replaces an earlier one."""
        if value is not None:
            self.values[name] = value

    def collect(self, name: str, value: str) -> None:
        """Append a word to a list unless it is there."""
        words = self.values.setdefault(name, [])
        if value not in words:
            words.append(value)

    def match(self, table: Iterable[Pattern], text: str) -> None:
        """Take in every named group of every pattern that this message matches; numbers become numbers."""
        for pattern in table:
            if pattern.literal in text and (match := pattern.regex.search(text)):
                for name, value in match.groupdict().items():
                    if value is not None:
                        self.add(name, value.removeprefix("torch.") if name in TEXTS else number_or_text(value))


def number_or_text(text: str) -> Any:
    """A number when the text is one (thousands separators allowed), the text otherwise."""
    number = to_number(text) if re.fullmatch(r"-?[\d,]*\.?\d+", text) else None
    return text.strip() if number is None else number


DRAFTER_CLASS = re.compile("MTP|NextN|Draft|DFlash|Eagle|EAGLE|Medusa|DSpark")
"""Words in the class names of drafters, which stand beside the target's own."""


_FLAG = re.compile(
    r"""'(?P<quoted>\w+)':\ (?P<q>'[^']*'|\[[^\]]*\]|[^'\[,}\s][^,}\s]*)
      | (?<![\w'])(?P<named>\w+)=(?P<n>'[^']*'|\[[^\]]*\]|[^'\[,\s)][^,\s)]*)
      | --(?P<dashed>[\w-]+)(?:[ =](?P<d>(?!--)\S+))?""",
    re.VERBOSE,
)


def flags(text: str) -> dict[str, str]:
    """Options of a server as written: `'name': value`, `name=value` or `--name value`; the first of each counts."""
    found: dict[str, str] = {}
    for match in _FLAG.finditer(text):
        name = match["quoted"] or match["named"] or (match["dashed"] or "").replace("-", "_")
        value = match["q"] or match["n"] or match["d"] or "True"
        found.setdefault(name, _plain(value))
    return found


_SPECULATION = re.compile(
    r"speculative[_-]config['\"]?[\s:=]+['\"]?(?:\{(?P<json>[^{}]*)\}|SpeculativeConfig\((?P<named>[^()]*)\))"
)


def without_speculation(text: str) -> tuple[str, dict[str, str]]:
    """The text less the settings of a drafter, and these by themselves: both may name a model."""
    match = _SPECULATION.search(text)
    if match is None:
        return text, {}
    inner = flags((match["json"] or match["named"] or "").replace("\\", "").replace('"', "'"))
    return f"{text[: match.start()]} {text[match.end() :]}", inner


def _plain(value: str) -> str:
    """A printed value without quotes, module names and the frame of an enumeration."""
    value = value.strip("'\" ").replace("torch.", "")
    member = re.match(r"<?\w+\.([A-Za-z_]+):?", value) if value.startswith("<") else None
    return member[1] if member else value


_DTYPES = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "float8_e4m3fnuz": "fp8_e4m3"}


def stored_dtype(word: str) -> str:
    """A cache dtype as a flag names it, from the word of torch or of a log."""
    word = word.removeprefix("torch.")
    return _DTYPES.get(word, word)


def stated_controls(options: Mapping[str, str]) -> dict[str, Any]:
    """The controls among a server's options, numbers as numbers and switches as booleans."""
    words = {"True": True, "False": False}
    return {
        name: words.get(str(value), number_or_text(value) if isinstance(value, str) else value)
        for name, value in controls(options).items()
    }
