"""The commands around the store: text for people, one JSON object for programs, exit codes for both."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nvdash.cli import main

SEED = Path(__file__).parents[2] / "data" / "seed"
BENCH = str(SEED / "bench_serve_bf16.json")


def run(*words):
    done = CliRunner().invoke(main, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def answer(*words):
    done = run(*words, "--json")
    return json.loads(done.stdout), done.exit_code


def test_submit_runs_withdraw_reinstate_in_json():
    added, code = answer("submit", BENCH, "--set", "gpu=RTX 5090")
    assert (code, added["schema"], len(added["added"])) == (0, "nvdash.submit/1", 1)
    assert set(added) >= {"run_ids", "added", "duplicates", "warnings", "question", "matrix_digest", "nvdash_version"}
    again, _ = answer("submit", BENCH)
    assert (again["added"], again["duplicates"]) == ([], added["added"])
    listed, _ = answer("runs", "--gpu", "RTX 5090")
    assert listed["run_ids"] == added["added"]
    withdrawn, code = answer("withdraw", added["added"][0], "--reason", "wrong GPU")
    assert (code, withdrawn["run_ids"], withdrawn["comparisons_lost"]) == (0, added["added"], [])
    assert answer("runs")[0]["run_ids"] == []
    assert answer("reinstate", added["added"][0])[0]["run_ids"] == added["added"]


def test_the_same_in_words():
    stored = run("submit", BENCH)
    run_id = stored.stdout.split("Stored as run ")[1][:8]
    assert f"Take it back: ./run withdraw {run_id}" in stored.stdout
    assert "Not in any file: model" in stored.stdout
    assert run("submit", BENCH).stdout.startswith(f"This run is already stored as {run_id}.")
    assert "tiny-llama-dummy on cpu" in run("runs").stdout
    assert "output_tok_s: 826.7641983740446" in run("runs", run_id).stdout


def test_a_dry_run_stores_nothing():
    shown = run("submit", BENCH, "--dry-run")
    assert "Nothing was stored." in shown.stdout
    assert run("runs").stdout.startswith("No run matches.")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("submit", "nowhere.json"), 2, "nowhere.json"),
        (("submit", BENCH, "--set", "gpu"), 2, "key=value"),
        (("submit", BENCH, "--set", "gpuu=B200"), 2, "did you mean gpu"),
        (("withdraw", "00000000"), 3, "a stored run"),
        (("withdraw", "xyz"), 2, "hex digits"),
        (("compare",), 2, "--model NAME --gpu NAME"),
        (("compare", "00000000"), 2, "two run ids"),
        (("compare", "--model", "Qwen/Qwen3-8B"), 1, ""),
        (("import", "nowhere"), 2, "manifest.json"),
    ],
)
def test_wrong_use_is_told_with_its_exit_code(words, code, says):
    done = run(*words)
    assert done.exit_code == code
    assert says in done.output


def test_a_damaged_store_is_no_traceback(monkeypatch, tmp_path):
    bad = tmp_path / "bad.duckdb"
    bad.write_bytes(b"nonsense" * 999)
    monkeypatch.setenv("NVDASH_STORE", str(bad))
    for words in (("runs",), ("submit", BENCH), ("store", "status"), ("compare", "--gpu", "B200")):
        done = run(*words)
        assert done.exit_code == 2
        assert "expected a nvdash store that can be opened" in done.output


def test_export_and_import_move_everything(monkeypatch, tmp_path):
    run("submit", BENCH)
    out, code = answer("export", "--format", "parquet", "--out", str(tmp_path / "out"))
    assert (out["schema"], out["store_schema"]) == ("nvdash.export/1", 2)
    assert (code, len(out["run_ids"]), out["rows"]["runs.parquet"]) == (0, 1, 1)
    monkeypatch.setenv("NVDASH_STORE", str(tmp_path / "other.duckdb"))
    assert answer("import", str(tmp_path / "out"))[0]["added"] == out["run_ids"]
    assert "0 runs added, 1 were stored already." in run("import", str(tmp_path / "out")).stdout


def test_store_upkeep(tmp_path):
    run("submit", BENCH)
    assert answer("store", "status")[0]["rows"]["runs"] == 1
    migrated, _ = answer("store", "migrate")
    assert migrated["from"] == migrated["to"] == answer("store", "status")[0]["store_schema"]
    assert Path(answer("store", "backup", "--out", str(tmp_path / "copy"))[0]["file"]).is_file()
    assert set(answer("store", "maintain")[0]["orphans"].values()) == {0}
    run_id = answer("runs")[0]["run_ids"][0]
    assert run("store", "purge", run_id, "--reason", "customer name", "--yes").exit_code == 0
    assert answer("store", "status")[0]["rows"]["runs"] == 0


def test_a_purge_asks_first():
    run_id = answer("submit", BENCH)[0]["added"][0]
    assert run("store", "purge", run_id, "--reason", "x").exit_code == 1
    assert answer("runs")[0]["run_ids"] == [run_id]


TABLE = "rate=1,TTFT (s)\n4,0.25\n"


def test_columns_of_an_unknown_table_are_named_on_the_command_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    refused, code = answer("read", str(path))
    assert (code, "--map" in refused[0]["error"]["hint"]) == (2, True)
    columns = ("--map", "TTFT (s)=ttft_mean_ms:s", "--map", "rate=1=request_rate_rps")
    shown, code = answer("read", str(path), *columns)
    assert (code, shown[0]["runs"][0]["ttft_mean_ms"], shown[0]["runs"][0]["request_rate_rps"]) == (0, 250.0, 4)
    assert "Nothing was stored." in run("submit", str(path), *columns, "--dry-run").stdout
    stored, code = answer("submit", str(path), *columns)
    assert (code, len(stored["added"])) == (0, 1)
    assert stored["question"]["map"] == {"TTFT (s)": "ttft_mean_ms:s", "rate=1": "request_rate_rps"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("rate=1=",), "COLUMN=FIELD"),
        (("ttft_mean_ms",), "COLUMN=FIELD"),
        (("rate=1=ttft_mean_ms:GiB",), "a unit that becomes ms"),
        (("rate=1=ttft_mean",), "ttft_mean_ms"),
        (("rate=1=tp", "rate=1=pp"), "each column once"),
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(tmp_path, words, says):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    done = run("read", str(path), *(part for word in words for part in ("--map", word)))
    assert done.exit_code == 2
    assert says in done.stderr
