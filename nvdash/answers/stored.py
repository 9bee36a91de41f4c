"""Does a server store the cache in the format it was asked for: bytes per token against a yardstick.

A flag that is accepted proves nothing. The yardstick is the same model with a known format (a sibling's log or
scrape) or its config.json; without one, or where a token has no single price, the answer is unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from nvdash.errors import NvdashError, UsageError
from nvdash.formats import CACHE_ALIASES, CACHE_FORMATS, Encoding, cache_format

TOLERANCE = 0.02
"""Printed sizes have two decimals; formats differ by far more than this."""
WIDE = ("auto", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What one token costs in a format, for the model that a sibling or a config describes."""

    source: str
    token_bytes: Callable[[str, int], Fraction | int]
    """Bytes of one token for a cache flag and a tensor parallel size; for a sibling, at least so many."""
    values_per_token: int | None = None
    tp: int | None = None
    """Tensor parallel size the yardstick itself was measured at."""


def yardstick(path: Path) -> Yardstick | str:
    """The yardstick that a file gives, or why it gives none."""
    from nvdash.readers.bundle import read_file

    reading = read_file(path)
    if reading.error:
        raise UsageError(f"--sibling {path.name}", "a log, a scrape or a config.json", reading.error.found)
    if reading.format == "model-config":
        return _from_config(path)
    return _from_sibling(path.name, reading.server)


def _from_config(path: Path) -> Yardstick | str:
    from nvdash.footprint.formula import token_bytes
    from nvdash.footprint.layers import layout
    from nvdash.footprint.request import CacheRequest
    from nvdash.readers.model_files import read_json_object

    try:
        shape = layout(read_json_object(path))
    except NvdashError as error:
        return f"{path.name} describes a layout that is not known: {error.found}"
    if len({(cache.kind, cache.key_size, cache.kv_heads) for cache in shape.caches}) != 1 or shape.has_state:
        return f"{path.name} describes layers of several kinds: a token has no single price in them"

    def price(flag: str, tp: int) -> int:
        request = CacheRequest(kv_cache_dtype=flag, tp=tp)
        return sum(token_bytes(cache, shape, request) for cache in shape.caches)

    return Yardstick(path.name, price)


def _from_sibling(name: str, server: Mapping[str, Any]) -> Yardstick | str:
    seen = server.get("observed") or {}
    bytes_per_token, flag = seen.get("kv_bytes_per_token"), _stored_flag(server)
    if bytes_per_token is None:
        return f"{name} does not state the pool's bytes and tokens"
    if not seen.get("uniform"):
        return f"{name} does not show that tokens are blocks x block size, so a token may have no single price"
    encoding = _plain_encoding(flag)
    if encoding is None:
        return f"{name} stores {flag}, whose bytes do not tell the number of values"
    values = Fraction(bytes_per_token) * 8 / encoding.bits
    if values.denominator != 1:
        return f"{name}: {bytes_per_token} bytes per token are no whole number of {flag} values"
    return Yardstick(name, lambda asked, tp: _least(asked, int(values)), int(values), server.get("tp"))


def _stored_flag(server: Mapping[str, Any]) -> str:
    return str(server.get("kv_cache_dtype_resolved") or server.get("kv_cache_dtype_requested") or "auto")


def _plain_encoding(flag: str) -> Encoding | None:
    """The encoding of a format without scales; `auto` is the model's own 16-bit type."""
    if flag in WIDE:
        return Encoding(16)
    known = CACHE_FORMATS.get(CACHE_ALIASES.get(flag, flag))
    plain = known is not None and known.key == known.value and not known.key.block and not known.key.row_bytes
    return known.key if known and plain else None


def _least(flag: str, values: int) -> Fraction:
    """Bytes that so many values take at least: scales per block are exact, scales per row only known to be there."""
    stored = cache_format(flag)
    share = (stored.key.bits_per_value + stored.value.bits_per_value) / 2
    rows = stored.key.row_bytes + stored.value.row_bytes
    return Fraction(share * values / 8 + rows)


def judged(server: Mapping[str, Any], rule: Yardstick | str | None) -> dict[str, Any]:
    """Verdict, layer and reason for a server's cache, and what was observed beside what the request would take."""
    seen = dict(server.get("observed") or {})
    asked = str(server["kv_cache_dtype_requested"])
    reason = _cannot_tell(server, seen, asked, rule)
    if reason or not isinstance(rule, Yardstick):
        return _verdict("unknown", None, reason or "", seen)
    tp = server.get("tp") or 1
    try:
        wanted = rule.token_bytes(asked, tp)
    except NvdashError as error:
        return _verdict("unknown", None, f"the bytes of {asked} are not known: {error.found}", seen)
    seen |= {
        "kv_bytes_per_token_as_requested": int(wanted) if wanted == int(wanted) else float(wanted),
        "values_per_token": rule.values_per_token,
        "yardstick": rule.source,
        "matches": _matches(rule, float(seen["kv_bytes_per_token"]), tp),
    }
    return _compared(asked, seen, float(wanted))


def _cannot_tell(server: Mapping[str, Any], seen: Mapping[str, Any], asked: str, rule: Yardstick | str | None) -> str:
    if seen.get("kv_bytes_per_token") is None:
        return "the pool's bytes or tokens are not stated"
    if asked == "auto":
        return "auto names no format"
    if rule is None:
        return "needs a sibling with a known format or the model's config.json (--sibling)"
    if isinstance(rule, str):
        return rule
    if rule.tp is not None and server.get("tp") is not None and rule.tp != server["tp"]:
        return f"{rule.source} ran on {rule.tp} ranks, this server on {server['tp']}"
    return ""


def _matches(rule: Yardstick, observed: float, tp: int) -> list[str]:
    """Formats whose size is the one that was observed; equal bytes do not make the same format."""
    sizes = {flag: float(rule.token_bytes(flag, tp)) for flag in CACHE_FORMATS}
    return [flag for flag, size in sizes.items() if size and abs(observed - size) <= TOLERANCE * size]


def _compared(asked: str, seen: dict[str, Any], wanted: float) -> dict[str, Any]:
    observed = float(seen["kv_bytes_per_token"])
    exact = seen["pool_source"] in ("explicit pool", "kv_cache_memory_bytes")
    if abs(observed - wanted) <= (1e-3 if exact else TOLERANCE) * wanted:
        text = f"{observed:g} bytes per token are what {asked} takes; which kernels ran is not in this file"
        return _verdict("unknown", None, text, seen)
    stored = f", the size of {seen['matches'][0]}" if seen["matches"] else ""
    text = f"{asked} was accepted and would take {wanted:g} bytes per token; the pool holds {observed:g}{stored}"
    return _verdict("trap", "silent", text, seen)


def _verdict(verdict: str, layer: str | None, reason: str, seen: Mapping[str, Any]) -> dict[str, Any]:
    return {"verdict": verdict, "layer": layer, "reason": reason, **({"observed": dict(seen)} if seen else {})}
