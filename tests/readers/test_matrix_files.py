"""The matrix on disk: strict statements, overlays, one part per release, a cache by content."""

from pathlib import Path

import pytest

from nvdash.errors import NvdashError, Problems, UnknownError
from nvdash.readers import digest, matrix_files
from nvdash.readers.matrix import Matrix, matrix_digest, read_facts

RELEASES = """
- {release: "0.9.0", date: "2026-01-01", source: sdist}
- {release: "0.10.0", date: null, source: none}
- {release: "0.11.0", date: "2026-03-01", source: sdist, flashinfer: "0.7.2"}
"""
STATEMENT = """
- id: a
  when: {backend: FLASHINFER, arch: [sm90, sm120], head_size: {not: [64]}}
  since: "0.9.0"
  verdict: expected
  evidence: {release: "0.11.0", file: a.py, line: 3}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shipped matrix of one framework."""
    root = tmp_path / "matrix"
    (root / "vllm" / "facts").mkdir(parents=True)
    (root / "vllm" / "releases.yaml").write_text(RELEASES)
    (root / "vllm" / "a.yaml").write_text(STATEMENT)
    monkeypatch.setattr(digest, "SHIPPED", root)
    monkeypatch.setenv("NVDASH_CACHE", str(tmp_path / "cache"))
    return root


def write(folder: Path, text: str) -> None:
    (folder / "vllm" / "a.yaml").write_text(text)


def problem(folder: Path, text: str) -> str:
    write(folder, text)
    with pytest.raises(NvdashError) as caught:
        Matrix().rules("vllm")
    return str(caught.value)


def test_a_statement_holds_in_the_read_releases_of_its_run(folder):
    rules = Matrix().rules("vllm")
    held = {release.name: [item.id for item in rules.statements(release.name)] for release in rules.releases}
    assert held == {"0.9.0": ["a"], "0.10.0": [], "0.11.0": ["a"]}
    assert rules.newest.name == "0.11.0"
    assert rules.release("0.11.0").flashinfer == "0.7.2"


def test_until_is_the_first_release_without_it(folder):
    write(folder, STATEMENT.replace('since: "0.9.0"', 'since: "0.9.0"\n  until: "0.11.0"'))
    rules = Matrix().rules("vllm")
    assert [len(rules.statements(name)) for name in ("0.9.0", "0.11.0")] == [1, 0]


def test_the_second_load_reads_no_yaml(folder, monkeypatch):
    assert Matrix().rules("vllm").statements("0.9.0")
    monkeypatch.setattr(matrix_files, "read_rows", lambda path: pytest.fail("YAML was read again"))
    assert Matrix().rules("vllm").statements("0.9.0")


def test_a_changed_file_is_compiled_anew_and_changes_the_digest(folder):
    before = matrix_digest()
    assert Matrix().rules("vllm").statements("0.9.0")[0].verdict == "expected"
    write(folder, STATEMENT.replace("expected", "trap") + '  layer: forward\n  reason: "raises"\n')
    assert matrix_digest() != before
    assert Matrix().rules("vllm").statements("0.9.0")[0].verdict == "trap"


def test_files_are_found_in_the_order_of_their_paths_and_links_to_folders_are_not_followed(folder):
    for name in ("b.yaml", "a-b/c.yaml", "a/z.yaml", "a/b/c.yaml", "notes.md"):
        file = folder / "order" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("[]\n")
    (folder / "order" / "loop").symlink_to(folder / "order")
    found = [str(path.relative_to(folder / "order")) for path in digest.matrix_files("order")]
    assert found == ["a/b/c.yaml", "a/z.yaml", "a-b/c.yaml", "b.yaml"]


def test_a_broken_cache_is_ignored(folder, tmp_path):
    Matrix().rules("vllm")
    for path in (tmp_path / "cache").rglob("*.json"):
        path.write_text("{ broken")
    assert Matrix().rules("vllm").statements("0.9.0")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ('since: "0.9.0"', "since: 0.10"),
            ':4 a.since: expected a quoted version, got the number 0.1\n  hint: write "0.10"; YAML reads 0.10 as 0.1',
        ),
        (
            ("verdict: expected", "verdict: validated"),
            ":5 a.verdict: expected refused or trap or unknown or conditional or expected, got the text 'validated'",
        ),
        (
            ("verdict: expected", "verdikt: expected"),
            ":5 a.verdikt: expected a key of a support statement, got an unknown one\n  hint: did you mean verdict?",
        ),
        (("arch: [sm90, sm120]", "arch: []"), ":3 a.when.arch: expected at least one value, got an empty list"),
        (
            ("head_size: {not: [64]}", 'head_size: {not: ["64"]}'),
            ":3 a.when.head_size: expected a whole number, got the text '64'",
        ),
        (
            ("head_size: {not: [64]}", "head_seize: 64"),
            ":3 a.when.head_seize: expected an axis, an unknown one\n  hint: did you mean head_size,",
        ),
        (
            ("arch: [sm90, sm120]", "arch: {min: 90}"),
            ":3 a.when.arch: expected not (and min, max, multiple_of for numbers), got min",
        ),
        (("line: 3", "line: 0"), ":6 a.evidence.line: expected a line number from 1, got the number 0"),
        (('since: "0.9.0"', 'since: "0.9.1"'), ":2 a.since: expected a release of releases.yaml, got '0.9.1'"),
        (('since: "0.9.0"', 'since: "0.9.0"\n  until: "0.9.0"'), "a.until: expected a release after 0.9.0"),
        (("- id: a", "- id: 7"), ":2 7.id: expected text, got the number 7"),
        (("- id: a", "- id: a\n  kind: [support]"), ":3 a.kind: expected support or quant"),
        (("  verdict: expected\n", ""), ":2 a.verdict: expected this key, none"),
    ],
)
def test_a_slip_is_named_with_file_line_and_key(folder, change, expected):
    assert expected in problem(folder, STATEMENT.replace(*change))


def test_all_problems_of_a_file_are_told_together(folder):
    write(folder, STATEMENT.replace("verdict: expected", "verdict: yes").replace('"0.9.0"', "0.9"))
    with pytest.raises(Problems) as caught:
        Matrix().rules("vllm")
    assert "got yes, which YAML reads as a boolean" in str(caught.value)


def test_an_id_twice_in_one_root_is_refused_with_both_places(folder):
    assert "a.yaml:8 a: expected each id once, the first is at" in problem(folder, STATEMENT + STATEMENT)


def test_contradicting_statements_are_refused_with_both_places(folder):
    other = (
        STATEMENT.replace("id: a", "id: b").replace("expected", "conditional").replace("[sm90, sm120]", "[sm120, sm90]")
    )
    told = problem(folder, STATEMENT + other)
    assert "b.verdict: expected one verdict per condition and release, conditional, but" in told
    assert 'use the id "a" to replace that statement' in told


def test_a_refusal_and_a_later_trap_are_both_true(folder):
    no = STATEMENT.replace("expected", "refused") + '  layer: selector\n  reason: "skips it"\n'
    trap = (
        STATEMENT.replace("id: a", "id: b").replace("expected", "trap") + '  layer: constructor\n  reason: "raises"\n'
    )
    write(folder, no + trap)
    assert len(Matrix().rules("vllm").statements("0.9.0")) == 2
    assert "one verdict per condition" in problem(folder, no + trap.replace("constructor", "selector"))


def test_an_overlay_replaces_by_id_and_adds_a_fork(folder, tmp_path, monkeypatch):
    team = tmp_path / "team" / "vllm"
    team.mkdir(parents=True)
    (team / "releases.yaml").write_text('- {release: "0.11.0+team", source: sdist}\n')
    (team / "own.yaml").write_text(STATEMENT.replace("expected", "conditional"))
    monkeypatch.setenv("NVDASH_MATRIX_PATH", str(tmp_path / "team"))
    rules = Matrix().rules("vllm")
    assert rules.newest.name == "0.11.0+team"
    assert [item.verdict for item in rules.statements("0.11.0+team")] == ["conditional"]
    assert "own.yaml:2" in rules.statements("0.11.0")[0].where


def test_an_unknown_framework_names_those_there_are(folder):
    with pytest.raises(UnknownError, match="vllm"):
        Matrix().rules("vlm")


def test_trtllm_is_accepted_for_tensorrt_llm(folder):
    (folder / "tensorrt-llm").mkdir()
    (folder / "tensorrt-llm" / "releases.yaml").write_text('- {release: "1.2.1", source: commit}\n')
    assert Matrix().rules("trtllm").framework == "tensorrt-llm"


def test_facts_are_found_by_the_exact_release_string(folder):
    facts = 'release: "0.9.0+cu/1"\nfacts:\n- {fact: a, value: [1, 2], path: a.py, line: 3}\n'
    (folder / "vllm" / "facts" / "0.9.0_cu_1.yaml").write_text(facts)
    assert read_facts("vllm", "0.9.0+cu/1") == [{"fact": "a", "value": [1, 2], "path": "a.py", "line": 3}]
    assert read_facts("vllm", "0.9.0_cu_1") is None
    assert read_facts("vllm", "0.9.1") is None


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("- {release: 0.10, source: sdist}", "release: expected a quoted version, got the number 0.1"),
        ("- {source: sdist}\n- {source: sdist}", ":1 release: expected this key, got none"),
        ('- {release: "1", source: sdist}\n- {release: "1", source: none}', ":2 1: expected each release once"),
        ('- {release: "1", source: sdist, date: "29.11.2026"}', ":1 date: expected a date such as"),
        ('- {release: "1", source: internet}', "source: expected sdist or wheel or commit or document or none"),
        ('- {release: "1", source: sdist, pinned: "2"}', "pinned: expected a key of a release"),
    ],
)
def test_a_release_file_is_as_strict(folder, rows, expected):
    (folder / "vllm" / "releases.yaml").write_text(rows)
    with pytest.raises(NvdashError) as caught:
        Matrix().rules("vllm")
    assert expected in str(caught.value)
