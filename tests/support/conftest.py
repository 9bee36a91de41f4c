"""Small matrices in memory, so that a test shows every fact that its verdict rests on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from nvdash.readers.matrix import Matrix, Release, Rules
from nvdash.readers.statements import statement_of
from nvdash.targets import Combination, HeadLayout

Row = dict[str, Any]
MakeMatrix = Callable[..., Matrix]


def rules_of(framework: str, rows: Sequence[Row], releases: Sequence[Release]) -> Rules:
    """Rules whose statements hold from `since` to before `until`, as the compiler sorts them."""
    order = {release.name: number for number, release in enumerate(releases)}
    made = Rules(framework, tuple(releases), ())
    for release in releases:
        here = order[release.name]
        held = [
            statement_of({"where": f"test.yaml:{number}", **row}, framework)
            for number, row in enumerate(rows, 1)
            if release.is_read and order[row["since"]] <= here < order.get(row.get("until", ""), len(order))
        ]
        made.loaded[release.name] = tuple(held)
    return made


@pytest.fixture
def make_matrix() -> MakeMatrix:
    """A matrix of one framework, and of others by keyword: `flashinfer=(rows, releases)`."""

    def make(
        rows: Sequence[Row],
        releases: Sequence[Release] = (Release("0.32.0", source="sdist"), Release("0.33.0", source="sdist")),
        axes: Mapping[str, Any] | None = None,
        **libraries: tuple[Sequence[Row], Sequence[Release]],
    ) -> Matrix:
        matrix = Matrix()
        matrix._rules["vllm"] = rules_of("vllm", rows, releases)
        for name, (library_rows, library_releases) in libraries.items():
            matrix._rules[name] = rules_of(name, library_rows, library_releases)
        matrix._axes = dict(axes or {})
        return matrix

    return make


@pytest.fixture
def nvfp4_on_sm120() -> Combination:
    """A dense GQA model with an NVFP4 cache on an RTX 5090."""
    return Combination(
        framework="vllm",
        release="0.33.0",
        arch="sm120",
        weights="bf16",
        kv_cache_dtype="nvfp4",
        heads=HeadLayout.parse("gqa:32/8x128"),
        checkpoint_kv="none",
    )


def row(id_: str, when: Row, verdict: str = "expected", **more: Any) -> Row:
    """A statement with evidence; refusals and traps get a layer and a reason when none is given."""
    base: Row = {"id": id_, "when": when, "since": "0.32.0", "verdict": verdict}
    if verdict in ("refused", "trap"):
        base |= {"layer": "selector", "reason": f"{id_} says no"}
    return base | {"evidence": {"release": "0.33.0", "file": "a.py", "line": 7}} | more


def priority(order: list[str], when: Row | None = None, **more: Any) -> Row:
    """The list of backends that the release tries."""
    return {"id": "-".join(order), "kind": "priority", "when": when or {}, "since": "0.32.0", "order": order, **more}
