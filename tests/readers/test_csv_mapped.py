"""A table in no known format, by the mapping that a person gives."""

import pytest

from nvdash.answers.mapping import is_table
from nvdash.errors import UsageError
from nvdash.readers.bundle import read_file
from nvdash.readers.csv_mapped import Mapped, preview, read_csv_mapped

TABLE = "ISL,OSL,Requests,Token_Throughput,TTFT\n1024,128,7500,3575.3588,0.25\n2048,2048,1500,3544.9,1.5\n"
MAPPING = {
    "ISL": Mapped("isl_target"),
    "OSL": Mapped("osl_target"),
    "Requests": Mapped("requests_completed"),
    "Token_Throughput": Mapped("output_tok_s"),
    "TTFT": Mapped("ttft_mean_ms", "s"),
}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def test_mapped_columns_become_runs_in_the_units_of_the_fields(table):
    reading = read_csv_mapped(table, MAPPING, {"model": "nvidia/Qwen3-8B-NVFP4", "gpu": "NVIDIA B200"})
    assert reading.error is None
    first = reading.runs[0]
    assert [first.get(name) for name in ("isl_target", "osl_target", "requests_completed")] == [1024, 128, 7500]
    assert (first.get("output_tok_s"), first.get("ttft_mean_ms")) == (3575.3588, 250.0)
    assert (first.get("model"), first.get("gpu")) == ("nvidia/Qwen3-8B-NVFP4", "NVIDIA B200")
    assert "model" not in {gap.field for gap in reading.missing}


def test_the_header_and_first_rows_are_offered_to_choose_from(table):
    header, rows = preview(table, 1)
    assert header == ["ISL", "OSL", "Requests", "Token_Throughput", "TTFT"]
    assert rows == [["1024", "128", "7500", "3575.3588", "0.25"]]


@pytest.mark.parametrize("sign", [";", "\t"])
def test_a_table_may_separate_its_cells_by_semicolon_or_tab(tmp_path, sign):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + TABLE.replace(",", sign))
    reading = read_csv_mapped(path, MAPPING)
    assert [run.get("output_tok_s") for run in reading.runs] == [3575.3588, 3544.9]
    assert is_table(read_file(path))


def test_a_decimal_comma_is_never_read_as_thousands(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("ISL;Token_Throughput\n1024;3575,3588\n2048;3,575\n")
    reading = read_csv_mapped(path, {"ISL": Mapped("isl_target"), "Token_Throughput": Mapped("output_tok_s")})
    assert all(run.get("output_tok_s") is None for run in reading.runs)
    assert "Token_Throughput" in " ".join(remark.text for remark in reading.warnings)


def test_a_mapping_to_no_field_names_the_nearest_one():
    with pytest.raises(UsageError, match="ttft_mean_ms"):
        Mapped("ttft_mean")


def test_a_unit_that_the_field_cannot_have_is_refused():
    with pytest.raises(UsageError, match="known: ms, s, us, ns"):
        Mapped("ttft_mean_ms", "GiB")


def test_per_cent_is_a_unit_of_shares_alone():
    assert Mapped("prefix_hit_rate", "%").value("37.5") == 0.375
    with pytest.raises(UsageError, match="none, it has no unit"):
        Mapped("model", "%")


def test_a_mapping_is_written_as_field_and_unit():
    assert Mapped.parse("ttft_mean_ms:s") == Mapped("ttft_mean_ms", "s")
    assert Mapped.parse(" output_tok_s ") == Mapped("output_tok_s")


def test_two_columns_cannot_be_one_field(table):
    error = read_csv_mapped(table, {"ISL": Mapped("isl_target"), "OSL": Mapped("isl_target")}).error
    assert error is not None and error.found == "ISL and OSL are both isl_target"


@pytest.mark.parametrize("written", ["n/a", "NaN"])
def test_cells_without_a_number_are_unknown_and_counted(tmp_path, written):
    path = tmp_path / "table.csv"
    path.write_text(TABLE.replace("0.25", written))
    reading = read_csv_mapped(path, MAPPING)
    assert [run.get("ttft_mean_ms") for run in reading.runs] == [None, 1500.0]
    assert reading.warnings[0].text == f"TTFT: 1 of 2 cells hold no number (such as '{written}'), taken as unknown"


def test_a_column_that_is_not_there_is_named(table):
    error = read_csv_mapped(table, {"Token_Throughputs": Mapped("output_tok_s")}).error
    assert error is not None
    assert "Token_Throughputs" in error.found and "Token_Throughput" in error.hint


def test_a_table_of_more_rows_than_anybody_ran_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("ISL\n" + "1\n" * 20_001)
    error = read_csv_mapped(path, {"ISL": Mapped("isl_target")}).error
    assert error is not None and error.expected == "at most 20,000 rows, as each becomes a run"


def test_a_negative_cell_refuses_the_table_and_stores_nothing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE.replace("3544.9", "-1"))
    reading = read_csv_mapped(path, MAPPING)
    assert reading.error is not None and not reading.runs
