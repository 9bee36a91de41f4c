"""Support matrix: grid, cell detail, timeline and changes."""

import pytest

from tests.pages.reading import chart_alts, table, text, visit


def pick(app, row, column):
    """Choose a cell of the grid by the start of its row and its column."""
    grid = app.dataframe[0]
    at = [name.startswith(row) for name in grid.value.index].index(True)
    app.session_state[grid.key] = {"selection": {"rows": [], "columns": [], "cells": [[at, column]]}}
    return app.run()


def test_the_grid_has_a_row_per_capability_and_a_symbol_in_every_cell(app):
    visit(app, "Support matrix")
    grid = app.dataframe[0].value
    assert [name.split(" ")[0] for name in grid.index][:4] == ["SM75", "SM80", "SM86", "SM89"]
    assert list(grid.columns) == ["auto", "BF16", "FP8", "FP8 e4m3", "NVFP4", "NVFP4 4/6"]
    assert grid.map(lambda cell: cell[0] in "●◐◇▲✕?").all().all()
    assert app.info[0].value == "Choose a cell to see why, who says so, and how to check it."


def test_words_replace_symbols_for_who_reads_by_ear(app):
    visit(app, "Support matrix", matrix_words="true")
    words = {cell.split(" ")[0] for cell in app.dataframe[0].value.to_numpy().ravel()}
    assert words <= {"Validated", "Expected", "Conditions", "Trap", "Refused", "Unknown"}


def test_all_cache_dtypes_are_more_than_the_main_ones(app):
    visit(app, "Support matrix", matrix_every="true")
    columns = list(app.dataframe[0].value.columns)
    assert len(columns) > 10
    assert "FP8 e5m2" in columns


def test_a_chosen_cell_tells_stages_evidence_and_how_to_check(app):
    visit(app, "Support matrix")
    pick(app, "SM120", "NVFP4")
    assert any(
        line.value.startswith("**SM120 × NVFP4 cache** :blue-badge[◐ Expected] since 0.32.0") for line in app.markdown
    )
    assert "flashinfer.py:" in table(app, "Stage", "Evidence")["Evidence"].iloc[3]
    assert any("--gpu sm120" in code.value and "--kv-cache-dtype nvfp4" in code.value for code in app.code)
    assert [link.label for link in app.get("page_link")] == ["Run a smoke test"]


def test_a_chosen_cell_can_become_the_configuration(app):
    visit(app, "Support matrix")
    pick(app, "SM90", "FP8")
    next(button for button in app.button if button.label == "Use this configuration").click().run()
    assert app.sidebar.selectbox(key="kv").value == "fp8"
    assert app.sidebar.selectbox(key="gpu").value == "h100-sxm"


def test_a_link_opens_the_cell_it_names(app):
    visit(app, "Support matrix", cell="sm120~nvfp4")
    assert any(line.value.startswith("**SM120 × NVFP4 cache**") for line in app.markdown)


def test_a_link_to_a_cell_that_is_not_there_gives_a_notice(app):
    visit(app, "Support matrix", cell="sm999~nvfp4")
    assert any("sm999~nvfp4" in line.value.replace("\\", "") for line in app.warning)


def test_axes_that_would_be_equal_swap_instead_of_erring(app):
    visit(app, "Support matrix")
    app.selectbox(key="matrix_columns").select("GPU").run()
    assert not app.exception
    assert app.selectbox(key="matrix_rows").value == "KV cache"


@pytest.mark.parametrize("stage", ["Weight GEMM", "Cache write", "Prefill", "Decode"])
def test_each_stage_can_be_read_alone(app, stage):
    visit(app, "Support matrix", matrix_stage=stage)
    assert not app.exception
    assert any(f"--stage {key}" in app.code[-1].value for key in ("weights", "kv_write", "prefill", "decode"))


@pytest.mark.parametrize("rows", ["Backend", "Weights", "Version"])
def test_other_axes_make_a_grid_too(app, rows):
    visit(app, "Support matrix", matrix_rows=rows)
    assert not app.exception
    assert len(app.dataframe[0].value) > 3


def test_the_timeline_says_since_when_and_what_refused_before(app):
    visit(app, "Support matrix", matrix_view="Timeline")
    stretches = table(app, "Line", "Releases", "Status", "Layer")
    mine = stretches[stretches["Line"] == "SM120"]
    assert list(mine["Releases"])[-1] == "0.32.0 to 0.33.0"
    assert "◐ Expected" in mine["Status"].iloc[-1]
    assert mine["Status"].iloc[-2].endswith("✕ Refused]") or "▲" in mine["Status"].iloc[-2]
    assert mine["Layer"].iloc[-2] == "selector"
    assert chart_alts(app)[0].startswith("Newest stretch per line: ")


def test_changes_names_what_was_gained_between_two_releases(app):
    visit(app, "Support matrix", matrix_view="Changes", matrix_from="0.24.0", matrix_to="0.33.0")
    assert any("↑ gained" in line.value and "unchanged" in line.value for line in app.markdown)
    rows = table(app, "GPU", "KV cache", "From", "To", "Evidence")
    mine = rows[(rows["GPU"] == "SM120") & (rows["KV cache"] == "NVFP4")].iloc[0]
    assert "◐ Expected" in mine["To"]
    assert "◐ Expected" not in mine["From"]


def test_the_same_release_on_both_sides_is_said(app):
    visit(app, "Support matrix", matrix_view="Changes", matrix_from="0.33.0", matrix_to="0.33.0")
    assert "Same release on both sides." in [line.value for line in app.info]


def test_exports_hold_the_grid_with_its_evidence(app):
    visit(app, "Support matrix")
    assert {button.key for button in app.get("download_button")} >= {"matrix_csv", "matrix_json"}
    assert "Held fixed by your configuration" in text(app)


def test_a_fleet_file_is_answered_row_by_row(app):
    visit(app, "Support matrix", matrix_view="Changes", matrix_from="0.27.0", matrix_to="0.33.0")
    fleet = b"- name: chat\n  model: meta-llama/Llama-3.1-8B-Instruct\n  gpu: rtx-5090\n  weights: bf16\n"
    app.file_uploader(key="matrix_fleet").upload("fleet.yaml", fleet + b"  kv_cache_dtype: nvfp4\n", "text/yaml").run()
    changed = table(app, "GPU", "From", "To")
    assert list(changed["GPU"]) == ["SM120"]
    assert "Refused" in changed["From"].iloc[0] and "Expected" in changed["To"].iloc[0]


def test_a_fleet_file_with_an_unknown_flag_names_its_line(app):
    visit(app, "Support matrix", matrix_view="Changes", matrix_from="0.27.0", matrix_to="0.33.0")
    app.file_uploader(key="matrix_fleet").upload("fleet.yaml", b"- name: a\n  gpuu: rtx-5090\n", "text/yaml").run()
    assert not app.exception
    assert app.error[0].value.startswith("**fleet.yaml\\:2 gpuu**: expected a flag of check")
