"""vLLM's own table of attention backends (docs/design/attention_backends.md, 0.16 to 0.26) as cells to compare.

The table is generated from declared attributes; where it differs from what the selector decides, the
differences are listed, and explained in matrix/README.md.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from nvdash.errors import UsageError

CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")
HEAD_SIZES = (64, 128, 256, 512)
LATENT_SIZE = 576
PLAIN_SIZE = 128
NEEDED = ("Backend", "KV Dtypes", "Head Sizes", "Compute Cap.")
ELSEWHERE = re.compile(r"_DSV\d+$|^MINIMAX_|^STEP\d|^XPU_|^ROCM_|^CPU_|^TREE_")
"""Backends that a model or another platform brings; no CUDA priority list holds them."""


def cells(text: str) -> list[dict[str, str]]:
    """Every cell the tables decide, in the form that `drift.compare` reads."""
    rows = [row for row in table_rows(text) if not ELSEWHERE.search(row["Backend"])]
    if not rows:
        raise UsageError("attention_backends.md", f"a table with the columns {', '.join(NEEDED)}", "found none")
    words = sorted({word for row in rows for word in _words(row["KV Dtypes"])})
    by_cell: dict[tuple[str, str, str, int], bool] = {}
    for row, capability in product(rows, CAPABILITIES):
        if not covers(row["Compute Cap."], capability):
            continue
        for word, size in _asked(row, words):
            key = (row["Backend"], capability, word, size)
            by_cell[key] = by_cell.get(key, False) or _says_yes(row, word, size)
    return [
        {
            "backend": backend,
            "compute_capability": capability,
            "kv_cache_dtype": word,
            "head_size": str(size),
            "valid": str(int(valid)),
            "reasons": "" if valid else "not in upstream's table",
        }
        for (backend, capability, word, size), valid in by_cell.items()
    ]


def table_rows(text: str) -> Iterator[Mapping[str, str]]:
    """The rows of every table that has the needed columns."""
    heads: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        parts = [part.strip() for part in line.strip().strip("|").split("|")]
        if not heads:
            heads = parts
        elif not set(parts[0]) <= set("- ") and set(NEEDED) <= set(heads):
            row = dict(zip(heads, parts, strict=False))
            yield {**row, "Backend": _words(row["Backend"])[0]}


def covers(limit: str, capability: str) -> bool:
    """Whether `8.x-9.x`, `≥8.0`, `10.x, 12.x` or `Any` holds a capability; `N/A` is another platform's."""
    if limit == "Any":
        return True
    return any(_covers_part(part.strip(), float(capability)) for part in limit.split(","))


def _covers_part(part: str, capability: float) -> bool:
    bounds = re.fullmatch(r"(?:≥(?P<low>\d+\.\d)|(?P<from>\d+)\.x(?:-(?P<to>\d+)\.x)?)", part)
    if not bounds:
        return False
    if bounds["low"]:
        return capability >= float(bounds["low"])
    return int(bounds["from"]) <= int(capability) <= int(bounds["to"] or bounds["from"])


def _asked(row: Mapping[str, str], words: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Every dtype at one head size, and every head size at the row's first dtype."""
    if "MLA" in row["Backend"]:
        yield from ((word, LATENT_SIZE) for word in words)
        return
    sizes = _sizes(row)
    plain = PLAIN_SIZE if sizes is None or PLAIN_SIZE in sizes else min(sizes)
    yield from ((word, plain) for word in words)
    yield from ((_words(row["KV Dtypes"])[0], size) for size in HEAD_SIZES)


def _says_yes(row: Mapping[str, str], word: str, size: int) -> bool:
    sizes = _sizes(row)
    return word in _words(row["KV Dtypes"]) and (sizes is None or size in sizes)


def _sizes(row: Mapping[str, str]) -> set[int] | None:
    """The head sizes of a row; None for any."""
    numbers = re.findall(r"\d+", row["Head Sizes"])
    return {int(number) for number in numbers} if numbers else None


def _words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell) or [cell]
