"""Everything out and in again, in three formats."""

import csv
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nvdash.errors import UsageError
from nvdash.store import adding, lifecycle, runs, smoke, transfer
from nvdash.store.connection import reading
from nvdash.store.failure import StoreError

EVIL = "=cmd|' /C calc'!A0"


@pytest.fixture
def filled(store, new_run):
    """A store with one run of every kind of trouble."""
    trouble = new_run(model=EVIL, gpu="'quoted", label="", request_rate_rps="inf", chunked_prefill_size=-1, odd="\t+1")
    plain = new_run(
        samples=[{"task": "-x", "metric": "acc", "filter": "none", "sample": "ab", "score": 1.0}],
        quality=[{"task": "-x", "metric": "acc", "filter": "none", "value": 0.5, "higher_is_better": True}],
    )
    adding.add([trouble, plain])
    lifecycle.revise([plain.run_id], {"weight_format": "nvfp4"}, "typed")
    lifecycle.withdraw(trouble.run_id, "@later")
    smoke.add_smoke([({"verdict": "pass", "bytes": 1}, {"engine": "reference", "verdict": "pass"})])
    return store


def everything():
    found = runs.find(withdrawn=True)
    with reading() as connection:
        scores = runs.scores_of(connection, [run["run_id"] for run in found])
    assert [row["samples"] for rows in scores.values() for row in rows] == [{"ab": 1.0}]
    return [runs.get(run["run_id"]) for run in found], scores, smoke.smoke_reports()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_an_export_imported_elsewhere_is_the_same_store(filled, tmp_path, monkeypatch, form):
    before = everything()
    answer = transfer.export(tmp_path / "out", form)
    assert answer["rows"][f"runs.{form}"] == 2
    monkeypatch.setenv("NVDASH_STORE", str(tmp_path / "other.duckdb"))
    assert len(transfer.import_(tmp_path / "out").added) == 2
    assert everything() == before
    again = transfer.import_(tmp_path / "out")
    assert (again.added, len(again.duplicates), again.reinstated) == ((), 2, ())
    assert everything() == before


def test_a_csv_cell_is_never_a_formula(filled, tmp_path):
    transfer.export(tmp_path / "out", "csv")
    cells = []
    for file in (tmp_path / "out").glob("*.csv"):
        with file.open(newline="") as opened:
            cells += [cell for row in csv.reader(opened) for cell in row]
    assert f"'{EVIL}" in cells
    number = "-1.0"
    assert number in cells
    assert [cell for cell in cells if cell.lstrip()[:1] in ("=", "+", "-", "@") and cell != number] == []


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20), max_size=30))
def test_every_text_survives_the_way_through_a_spreadsheet_file(tmp_path_factory, texts):
    place = tmp_path_factory.mktemp("texts")
    marks = ["=", "+1", "-", "@x", "'", "''", "'=", " =1", "\t=", "", '"', ",", "a\nb"]
    values = {"output_tok_s": 1.0, **{f"extra {n}": text for n, text in enumerate([*marks, *texts])}}
    adding.add([adding.NewRun("ab" * 32, values, adding.FileMark("f", "x"))], place / "one.duckdb")
    transfer.export(place / "out", "csv", place / "one.duckdb")
    transfer.import_(place / "out", place / "two.duckdb")
    extras = [runs.get("ab" * 32, place / f"{name}.duckdb")["extras"] for name in ("one", "two")]
    assert extras[0] == extras[1]
    assert extras[1]["extra 0"] == "="


def test_headers_carry_units(filled, tmp_path):
    transfer.export(tmp_path / "out", "csv")
    header = (tmp_path / "out" / "runs.csv").read_text().splitlines()[0].split(",")
    assert "kv_tokens [tokens]" in header
    assert "ttft_mean_ms" in header
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["columns"]["isl_mean"]["unit"] == "tokens"


def test_an_export_never_overwrites(filled, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    with pytest.raises(UsageError, match="empty or a new folder"):
        transfer.export(tmp_path / "full", "csv")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "manifest.json"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json"),
        (lambda folder: (folder / "runs.csv").unlink(), "runs.csv"),
        (lambda folder: edit(folder, "run_id", "nonsense"), "nonsense"),
        (lambda folder: edit(folder, "100.0", "NaN"), "finite"),
        (lambda folder: edit(folder, "100.0", "-5"), "finite"),
        (lambda folder: edit(folder, "100.0", "many"), "runs"),
        (lambda folder: (folder / "runs.csv").write_bytes(b"\xff\xfe\x00" * 50), "runs.csv"),
        (lambda folder: (folder / "runs.csv").write_text(""), "runs"),
    ],
)
def test_a_spoiled_export_is_refused_and_nothing_is_stored(filled, tmp_path, monkeypatch, spoil, says):
    transfer.export(tmp_path / "out", "csv")
    spoil(tmp_path / "out")
    monkeypatch.setenv("NVDASH_STORE", str(tmp_path / "other.duckdb"))
    with pytest.raises(UsageError, match=says):
        transfer.import_(tmp_path / "out")
    assert runs.count(withdrawn=True) == 0


def edit(folder, before, after):
    file = folder / "runs.csv"
    file.write_text(file.read_text().replace(before, after))


def test_an_export_of_a_newer_schema_is_refused(filled, tmp_path):
    transfer.export(tmp_path / "out", "json")
    manifest = tmp_path / "out" / "manifest.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "schema": 99}))
    with pytest.raises(StoreError, match="schema 99"):
        transfer.import_(tmp_path / "out")


def test_a_smoke_report_is_stored_once(store):
    report = {"verdict": "pass", "engine": "reference"}
    added, known = smoke.add_smoke([(report, {"engine": "reference", "verdict": "pass"})])
    assert (len(added), known) == (1, [])
    assert smoke.add_smoke([(report, {"engine": "reference"})]) == ([], added)
    assert [row["verdict"] for row in smoke.smoke_reports(engine="reference")] == ["pass"]
    assert smoke.smoke_reports(engine="vllm") == []
