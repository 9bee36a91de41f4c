"""Smoke tests: cases, a run in a process of its own, the report."""

import time

import pytest

from nvdash.answers import smoke
from tests.pages.reading import press, table, text, visit


def test_cases_say_what_they_answer_and_why_one_cannot_run_here(app):
    visit(app, "Smoke tests")
    cases = table(app, "Case", "Expect", "Last verdict", "Here").set_index("Case")
    assert cases.loc["Reference, nvfp4 cache", "Here"] == "runs here"
    assert "no kernel. Cases of vLLM show which kernels really run." in text(app)
    assert "interpreter" in cases.loc["Cache only on vLLM", "Here"]
    assert (cases["Last verdict"] == "not run").all()


def test_a_case_that_cannot_run_here_keeps_the_button_shut_and_gives_the_command(app):
    visit(app, "Smoke tests")
    app.pills(key="smoke_cases").set_value(["Cache only on vLLM"]).run()
    assert app.button(key="smoke_start").disabled
    said = text(app)
    assert "1 of the chosen cases cannot run here" in said
    assert "Cache only on vLLM: run it where a GPU is, then submit the file it writes" in said


def test_the_number_of_chosen_cases_is_on_the_button(app):
    visit(app, "Smoke tests")
    app.pills(key="smoke_cases").set_value(["Reference, bf16 cache", "Reference, fp8 cache"]).run()
    assert app.button(key="smoke_start").label == "Run 2 cases"


def test_an_empty_store_has_no_report_and_says_how_to_get_one(app):
    visit(app, "Smoke tests", smoke_view="Last result")
    assert app.info[0].value == "No smoke report in this store yet. Run a case, or submit a report."
    app.segmented_control(key="smoke_view").select("History").run()
    assert "No smoke report in this store yet." in text(app)
    assert "No CUDA kernel path is validated in this store yet." in text(app)


@pytest.mark.full
def test_a_reference_case_runs_and_its_report_shows_bytes_numbers_and_what_was_not_tested(app):
    visit(app, "Smoke tests")
    app.pills(key="smoke_cases").set_value(["Reference, nvfp4 cache"]).run()
    app.button(key="smoke_start").click().run()
    deadline = time.monotonic() + 240
    while smoke.running() and time.monotonic() < deadline:
        time.sleep(0.5)
    app.run()
    assert any("**● Pass.**" in line.value for line in app.success), text(app)
    app.segmented_control(key="smoke_view").select("Last result").run()
    assert "It proves no kernel and changes no verdict." in text(app)
    asked = table(app, "What", "Requested", "Resolved", "Observed", "Check").set_index("What")
    assert asked.loc["Cache dtype", "Check"] == "✓ stored as requested"
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Formula, B/token"] == metrics["Allocated, B/token"]
    assert "asserted checks passed." in text(app)
    assert "Not tested" in [heading.value for heading in app.subheader]


@pytest.mark.full
def test_a_cancelled_run_says_so_and_leaves_no_report(app):
    visit(app, "Smoke tests")
    app.button(key="smoke_start").click().run()
    press(app, "Cancel")
    deadline = time.monotonic() + 60
    while smoke.running() and time.monotonic() < deadline:
        time.sleep(0.2)
    app.run()
    assert "Cancelled. Finished cases are kept." in [line.value for line in app.info]
    assert smoke.history() == []
