"""What a stored value may be: the type of its column, finite, of bounded size; and how typed text becomes one."""

import math
from datetime import UTC, datetime
from typing import Any

from nvdash.errors import UsageError, did_you_mean
from nvdash.readers.record import MAX_TEXT, clean_model, clean_text, to_number
from nvdash.store.columns import BY_NAME, KNOWN

TEXT_LIMIT = 1_000
WHOLE_LIMIT = 2**53
MAY_BE_UNLIMITED = frozenset({"request_rate_rps"})
MAY_BE_NEGATIVE = frozenset({name for name, field in KNOWN.items() if field.kind == "signed"})
NO_ANSWER = frozenset({"", "unknown", "i do not know", "none given"})
YES_NO = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _of(*types: str) -> frozenset[str]:
    return frozenset(name for name, column in BY_NAME.items() if column.type in types)


_NUMBERS = {float: _of("DOUBLE"), int: _of("BIGINT", "DOUBLE"), bool: _of("BOOLEAN")}
_TEXTS = _of("VARCHAR")


def stored(name: str, value: Any) -> Any:
    """The value as its column takes it; a value of another type, size or range is refused."""
    kind = type(value)
    if kind is str:
        plain = name in _TEXTS and len(value) <= TEXT_LIMIT and "\x00" not in value
    else:
        plain = name in _NUMBERS.get(kind, ()) and 0 <= value < WHOLE_LIMIT
    return value if plain else _checked(name, value)


def _checked(name: str, value: Any) -> Any:
    column = BY_NAME.get(name)
    kind = column.type if column else _kind_of(value)
    if kind == "VARCHAR":
        return _text(name, value)
    if kind == "BOOLEAN":
        return value if isinstance(value, bool) else _refuse(name, "true or false", value)
    if kind == "TIMESTAMP":
        return _moment(name, value)
    return _number(name, value, whole=kind == "BIGINT")


def typed(name: str, text: str) -> Any:
    """What a person typed for a field: None for "I do not know", else a value of the field's type."""
    field = KNOWN.get(name)
    if field is None:
        hint = did_you_mean(name, KNOWN) or "nvdash submit --help names the usual ones"
        raise UsageError(f"--set {name}", "the name of a field", f"found {name!r}", hint)
    if text.strip().lower() in NO_ANSWER:
        return None
    if field.kind == "flag":
        answer = YES_NO.get(text.strip().lower())
        return _refuse(f"--set {name}", "true or false", text) if answer is None else answer
    if field.kind in ("text", "list"):
        return _typed_text(name, text.strip())
    number = to_number(text)
    if number is None:
        return _refuse(f"--set {name}", f"a number{f' of {field.unit}' if field.unit else ''}", text)
    if field.kind == "ratio" and number > 1:
        return _refuse(f"--set {name}", "a fraction between 0 and 1", text)
    return stored(name, number)


def _typed_text(name: str, text: str) -> str | None:
    """What was typed, rid of what must not be kept, as a file's texts are."""
    if len(text) > MAX_TEXT:
        return str(_refuse(f"--set {name}", f"a text of at most {MAX_TEXT} characters", f"{len(text)} characters"))
    return clean_model(text) if name in ("model", "tokenizer") else clean_text(text)


def _kind_of(value: Any) -> str:
    return "DOUBLE" if isinstance(value, int | float) and not isinstance(value, bool) else "VARCHAR"


def _text(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    if len(text) > TEXT_LIMIT:
        return str(_refuse(name, f"a text of at most {TEXT_LIMIT} characters", f"{len(text)} characters"))
    return text.replace("\x00", "")


def _number(name: str, value: Any, *, whole: bool) -> float | int:
    """A finite number (an unlimited rate or concurrency may be inf), not negative."""
    if isinstance(value, str) and value == "inf":
        value = math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return float(_refuse(name, "a number", value))
    if value in (math.inf, -math.inf):
        return value if value > 0 and name in MAY_BE_UNLIMITED else float(_refuse(name, "a finite number", value))
    if name in BY_NAME and name not in MAY_BE_NEGATIVE and value < 0:
        return float(_refuse(name, "a number that is not negative", value))
    if whole and (value != int(value) or value > WHOLE_LIMIT):
        return float(_refuse(name, "a whole number", value))
    return int(value) if whole else value


def _moment(name: str, value: Any) -> str:
    """ISO text in UTC; a time without a zone is kept as it was written."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return str(_refuse(name, "a date and time such as 2026-11-29T18:53:46", value))
    return (moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment).isoformat()


def _refuse(where: str, expected: str, found: Any) -> Any:
    raise UsageError(where, expected, f"found {str(found)[:60]!r}", "leave it out if you do not know")
