"""Small matrices in memory, so that a test shows every fact that its verdict rests on."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nvdash.readers import digest
from nvdash.readers.digest import SHIPPED
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


@pytest.fixture
def small_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A matrix on disk: the shipped names and catalogues, and a vLLM of three releases, one of them unread."""
    root = tmp_path / "matrix"
    (root / "vllm" / "facts").mkdir(parents=True)
    for name in ("axes.yaml", "gpus.yaml", "models.yaml"):
        shutil.copy(SHIPPED / name, root / name)
    (root / "vllm" / "releases.yaml").write_text(SMALL_RELEASES)
    (root / "vllm" / "small.yaml").write_text(SMALL_STATEMENTS)
    monkeypatch.setattr(digest, "SHIPPED", root)
    monkeypatch.setenv("NVDASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NVDASH_MATRIX_PATH", raising=False)
    return root


SMALL_RELEASES = """
- {release: "0.27.0", date: "2026-07-01", source: sdist}
- {release: "0.31.0", date: null, source: none}
- {release: "0.32.0", date: "2026-10-01", source: sdist}
- {release: "0.33.0", date: "2026-11-01", source: sdist}
"""
SMALL_STATEMENTS = """
- id: words
  when: {kv_cache_dtype: {not: [auto, fp8, nvfp4]}}
  since: "0.27.0"
  until: "0.31.0"
  verdict: refused
  layer: config
  reason: "no such value"
  evidence: {release: "0.27.0", file: cache.py, line: 1}
  why: test
  source: test
- id: priority-old
  kind: priority
  when: {}
  since: "0.27.0"
  until: "0.31.0"
  order: [FLASH_ATTN, FLASHINFER]
  evidence: {release: "0.27.0", file: cuda.py, line: 2}
  why: test
  source: test
- id: priority
  kind: priority
  when: {}
  since: "0.32.0"
  order: [FLASH_ATTN, FLASHINFER]
  evidence: {release: "0.33.0", file: cuda.py, line: 2}
  why: test
  source: test
- id: fa-old
  when: {backend: FLASH_ATTN, kv_cache_dtype: nvfp4}
  since: "0.27.0"
  until: "0.31.0"
  verdict: refused
  layer: selector
  reason: "kv_cache_dtype not supported"
  evidence: {release: "0.27.0", file: flash_attn.py, line: 3}
  why: test
  source: test
- id: fa
  when: {backend: FLASH_ATTN, kv_cache_dtype: nvfp4}
  since: "0.32.0"
  verdict: refused
  layer: selector
  reason: "kv_cache_dtype not supported"
  evidence: {release: "0.33.0", file: flash_attn.py, line: 3}
  why: test
  source: test
- id: fa-wide-old
  when: {backend: FLASH_ATTN, kv_cache_dtype: [auto, fp8], arch: [sm90, sm120]}
  since: "0.27.0"
  until: "0.31.0"
  verdict: expected
  evidence: {release: "0.27.0", file: flash_attn.py, line: 4}
  why: test
  source: test
- id: fa-wide
  when: {backend: FLASH_ATTN, kv_cache_dtype: [auto, fp8], arch: [sm90, sm120]}
  since: "0.32.0"
  verdict: expected
  evidence: {release: "0.33.0", file: flash_attn.py, line: 4}
  why: test
  source: test
- id: fi-old
  when: {backend: FLASHINFER, kv_cache_dtype: nvfp4, arch: [sm90, sm120]}
  since: "0.27.0"
  until: "0.31.0"
  verdict: refused
  layer: selector
  reason: "kv_cache_dtype not supported"
  evidence: {release: "0.27.0", file: flashinfer.py, line: 447}
  why: test
  source: test
- id: fi
  when: {backend: FLASHINFER, kv_cache_dtype: nvfp4, arch: [sm90, sm120]}
  since: "0.32.0"
  verdict: expected
  kernel: dequant
  evidence: {release: "0.33.0", file: flashinfer.py, line: 653}
  why: test
  source: test
- id: fi-64
  when: {backend: FLASHINFER, kv_cache_dtype: nvfp4, head_size: 64}
  since: "0.32.0"
  verdict: refused
  layer: selector
  reason: "fa2 prefill misreads it at head size 64"
  evidence: {release: "0.33.0", file: flashinfer.py, line: 684}
  why: test
  source: test
- id: modelopt
  kind: quant
  when: {weights: nvfp4, method: modelopt_fp4, arch: [sm90, sm120]}
  since: "0.32.0"
  verdict: expected
  kernel: native
  evidence: {release: "0.33.0", file: modelopt.py, line: 9}
  why: test
  source: test
"""
