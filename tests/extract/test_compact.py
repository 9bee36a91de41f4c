"""Atoms of many releases become statements over runs; the YAML that is written reads back."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.extract.compact import statements
from nvdash.extract.emit import MARK, flow, rows_text, write
from nvdash.extract.known import atoms_of, earlier_readings
from nvdash.extract.statements import Atom, Reading, frozen
from nvdash.readers.yaml_rows import parse_yaml, read_rows

ORDER = ["0.13.0", "0.14.0", "0.15.0", "0.16.0", "0.17.0"]
REFUSED = {"verdict": "refused", "layer": "selector", "reason": "no"}


def atom(arch: str | None = "sm120", dtype: str | None = "nvfp4", **said: object) -> Atom:
    return Atom("fast", "support", frozen(said or REFUSED), frozen({"backend": "FAST"}), arch, dtype)


def reading(release: str, *atoms: Atom, line: int = 7) -> Reading:
    made = Reading(release, facts=[{"fact": "kv_cache_dtype.values", "value": ["auto", "fp8", "nvfp4"]}])
    for one in atoms:
        made.add(one, ("fast.py", line), frozenset({f"assumed_in_{release[2:4]}"}))
    return made


def runs_of(*readings: Reading) -> list[tuple[str, str | None, str]]:
    rows = statements(readings, ORDER).get("fast", [])
    return [(row["since"], row["until"], row["evidence"]["release"]) for row in rows]


def test_a_run_ends_where_a_release_no_longer_says_it():
    assert runs_of(reading("0.13.0", atom()), reading("0.14.0")) == [("0.13.0", "0.14.0", "0.13.0")]


def test_a_run_is_open_when_the_newest_release_says_it():
    assert runs_of(reading("0.16.0", atom()), reading("0.17.0", atom())) == [("0.16.0", None, "0.17.0")]


def test_an_unread_release_splits_a_run():
    every = [reading(release, atom()) for release in ORDER if release != "0.15.0"]
    assert runs_of(*every) == [("0.13.0", "0.15.0", "0.14.0"), ("0.16.0", None, "0.17.0")]


def test_evidence_is_the_newest_line_and_assumptions_are_those_of_the_whole_run():
    (row,) = statements([reading("0.16.0", atom(), line=3), reading("0.17.0", atom(), line=9)], ORDER)["fast"]
    assert row["evidence"] == {"release": "0.17.0", "file": "fast.py", "line": 9, "lines": {"0.16.0": 3}}
    assert row["assumes"] == ["assumed_in_16", "assumed_in_17"]


def test_equal_runs_of_cards_and_dtypes_become_lists_in_a_fixed_order():
    cells = [atom(arch, dtype) for arch in ("sm120", "sm80") for dtype in ("nvfp4", "fp8")]
    (row,) = statements([reading("0.17.0", *cells)], ORDER)["fast"]
    assert row["when"] == {"backend": "FAST", "arch": ["sm80", "sm120"], "kv_cache_dtype": ["fp8", "nvfp4"]}


def test_cells_that_form_no_rectangle_are_told_apart():
    rows = statements([reading("0.17.0", atom("sm80", "fp8"), atom("sm120", "fp8"), atom("sm120", "nvfp4"))], ORDER)
    assert [(r["when"]["arch"], r["when"]["kv_cache_dtype"]) for r in rows["fast"]] == [
        ("sm120", ["fp8", "nvfp4"]),
        ("sm80", "fp8"),
    ]


def test_ids_are_unique_and_say_what_and_since_when():
    rows = statements([reading("0.17.0", atom(), atom(None, "fp8", **{**REFUSED, "reason": "other"}))], ORDER)["fast"]
    assert len({row["id"] for row in rows}) == 2
    assert "vllm-fast-sm120-nvfp4-refused" in rows[1]["id"]
    assert all(row["id"].endswith("since-0.17.0") for row in rows)


def test_statements_spread_back_into_the_atoms_they_were_made_of(tmp_path):
    before = [reading("0.13.0", atom()), reading("0.14.0", atom(), atom("sm80", "fp8"))]
    rows = statements(before, ORDER)
    write(tmp_path, {f"{name}.yaml": rows_text(said) for name, said in rows.items()})
    after = {r.release: set(r.atoms) for r in earlier_readings(tmp_path, ORDER)}
    assert after["0.13.0"] == set(before[0].atoms)
    assert after["0.14.0"] == set(before[1].atoms)
    assert after["0.16.0"] == set()


def test_every_release_gets_its_own_line_back(tmp_path):
    lines = {"0.13.0": 3, "0.14.0": 5, "0.16.0": 5, "0.17.0": 9}
    rows = statements([reading(release, atom(), line=line) for release, line in lines.items()], ORDER)
    write(tmp_path, {f"{name}.yaml": rows_text(said) for name, said in rows.items()})
    back = {r.release: evidence.place for r in earlier_readings(tmp_path, ORDER) for evidence in r.atoms.values()}
    assert back == {release: ("fast.py", line) for release, line in lines.items()}


def test_cells_that_stood_apart_in_an_earlier_release_are_told_apart():
    before = reading("0.16.0", atom("sm80"), line=3)
    before.add(atom("sm120"), ("fast.py", 4))
    rows = statements([before, reading("0.17.0", atom("sm80"), atom("sm120"), line=9)], ORDER)["fast"]
    assert [(r["when"]["arch"], r["evidence"]["lines"]) for r in rows] == [
        ("sm120", {"0.16.0": 4}),
        ("sm80", {"0.16.0": 3}),
    ]


def test_a_condition_on_unlisted_dtypes_survives_the_way_back():
    row = {"when": {"kv_cache_dtype": {"not": ["auto", "fp8"]}}, "since": "0.13.0", "verdict": "refused", "id": "x"}
    (made,) = atoms_of(row, "cache_dtypes")
    assert made.kv_cache_dtype is None
    assert dict(made.when)["kv_cache_dtype"] == json.dumps({"not": ["auto", "fp8"]})


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")))
SCALARS = st.none() | st.booleans() | st.integers(-9, 10**6) | TEXTS
KEYS = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@settings(deadline=None)
@given(VALUES)
def test_whatever_is_written_reads_back_as_itself(value):
    text = f"key: {flow(value)}\n"
    if any(word in text for word in ("\u2028", "\u2029", "\x85", "\ufeff")):
        return
    assert parse_yaml(text.encode(), "x") == {"key": value}


@pytest.mark.parametrize(
    "text", ["0.13.0", "no", "1e3", "2026-11-29", "a: b", "x #y", "fp8", "-", "{a}", "null", "3_000"]
)
def test_text_that_yaml_reads_otherwise_is_quoted(text):
    assert parse_yaml(f"key: {flow(text)}\n".encode(), "x") == {"key": text}


def test_files_are_put_in_place_whole_and_without_leftovers(tmp_path):
    write(tmp_path, {"a.yaml": MARK, "facts/0.1.yaml": 'release: "0.1"\nfacts:\n'})
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["0.1.yaml", "a.yaml"]
    assert read_rows(tmp_path / "a.yaml") == []
