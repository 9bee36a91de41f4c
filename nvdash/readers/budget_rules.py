"""Reads `budget.yaml`: default fractions, measured items and the error of the weight estimate."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvdash.errors import UsageError
from nvdash.readers.compiled import compiled
from nvdash.readers.digest import matrix_roots

KEYS = {"fractions", "items", "weights"}


def budget_rules() -> Mapping[str, Any]:
    """The rules of the matrix folders; an overlay's rows stand last, and the last that holds wins."""
    files = [root / "budget.yaml" for root in matrix_roots() if (root / "budget.yaml").is_file()]
    return _of_files(tuple(files), tuple(path.stat().st_mtime_ns for path in files))


@lru_cache(maxsize=4)
def _of_files(files: tuple[Path, ...], stamps: tuple[int, ...]) -> Mapping[str, Any]:
    rules: Mapping[str, Any] = compiled("budget_rules", list(files), lambda: _merged(files))
    return rules


def _merged(files: tuple[Path, ...]) -> dict[str, Any]:
    from nvdash.readers.yaml_rows import read_yaml

    merged: dict[str, Any] = {"fractions": [], "items": [], "weights": {}}
    for path in files:
        whole = read_yaml(path)
        unknown = sorted(set(whole) - KEYS) if isinstance(whole, dict) else ["no mapping"]
        if unknown:
            raise UsageError(str(path), f"the keys {', '.join(sorted(KEYS))}", f"found {', '.join(unknown)}")
        merged["fractions"] += whole.get("fractions", [])
        merged["items"] += whole.get("items", [])
        merged["weights"] |= whole.get("weights", {})
    return merged
