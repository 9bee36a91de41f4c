"""Tables in no known format: offered column by column, read by what a person says, stored like any run."""

import pytest

from nvdash.answers import submission
from nvdash.answers.mapping import targets
from nvdash.answers.read import read
from nvdash.errors import UsageError
from nvdash.store import runs

TABLE = "ISL,Token_Throughput,TTFT (s),note\n1024,3575.5,0.25,<b>\n2048,3544.5,1.5,\n"
MAPPING = {"ISL": "isl_target", "Token_Throughput": "output_tok_s", "TTFT (s)": "ttft_mean_ms:s"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def test_a_table_in_no_known_format_is_offered_with_its_first_cells(table):
    shown = submission.preview([table])
    assert not shown["can_submit"]
    assert shown["tables"] == [
        {
            "file": "table.csv",
            "columns": [
                {"column": "ISL", "cells": ["1024", "2048"]},
                {"column": "Token_Throughput", "cells": ["3575.5", "3544.5"]},
                {"column": "TTFT (s)", "cells": ["0.25", "1.5"]},
                {"column": "note", "cells": ["<b>", ""]},
            ],
            "more": 0,
        }
    ]


def test_a_mapped_table_is_previewed_and_stored_like_any_run(table):
    shown = submission.preview([table], {"gpu": "rtx-5090"}, mapping=MAPPING)
    assert (shown["can_submit"], shown["files"][0]["format"]) == (True, "csv-mapped")
    assert {row["metric"]: row["this"] for row in shown["runs"][1]["rows"]} == {
        "output_tok_s": 3544.5,
        "ttft_mean_ms": 1500.0,
    }
    stored = submission.submit([table], {"gpu": "rtx-5090"}, mapping=MAPPING)
    kept = runs.get(stored["added"][0])
    assert (kept["isl_target"], kept["ttft_mean_ms"], kept["gpu"]) == (1024, 250.0, "rtx-5090")
    assert submission.submit([table], mapping=MAPPING)["duplicates"] == stored["added"]


def test_the_columns_stay_on_offer_while_a_mapping_is_wrong(table):
    shown = submission.preview([table], mapping={"ISL": "output_tok_s", "Token_Throughput": "output_tok_s"})
    assert shown["files"][0]["error"]["found"] == "ISL and Token_Throughput are both output_tok_s"
    assert shown["tables"][0]["columns"][0]["column"] == "ISL"
    assert not shown["can_submit"]


def test_two_tables_take_the_columns_that_each_has(table, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("OSL,Token_Throughput\n128,10.5\n")
    answers = read([table, other], mapping={**MAPPING, "OSL": "osl_target"})
    assert [len(answer["runs"]) for answer in answers] == [2, 1]
    assert (answers[1]["runs"][0]["osl_target"], answers[1]["runs"][0]["output_tok_s"]) == (128, 10.5)


def test_a_column_that_no_table_has_is_refused_with_the_nearest(table):
    with pytest.raises(UsageError) as refusal:
        read([table], mapping={"Token_Troughput": "output_tok_s"})
    assert "Token_Throughput" in refusal.value.hint


def test_a_mapping_never_reads_a_file_of_a_known_or_damaged_format(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"completed": 1')
    with pytest.raises(UsageError, match="no file is left to map"):
        read([path], mapping={"completed": "requests_completed"})


def test_a_very_wide_table_is_offered_in_part_and_said_so(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{n}" for n in range(1_000)) + "\n" + ",".join("1" * 1_000) + "\n")
    offered = submission.preview([path])["tables"][0]
    assert (len(offered["columns"]), offered["more"]) == (60, 940)


def test_every_target_of_a_column_says_its_unit():
    found = targets()
    assert found["ttft_mean_ms:s"] == "Time to first token, mean, s"
    assert found["ttft_mean_ms:ms"] == "Time to first token, mean, ms"
    assert found["prefix_hit_rate:%"] == "Prefix cache hit rate, %"
    assert len(set(found.values())) == len(found)
    assert found["model"] == "Model (Hugging Face id)"
