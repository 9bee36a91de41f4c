"""Every page, each as a first-time reader opens it."""

import re

import pytest

from tests.pages.reading import PAGES, fixed_line, text, visit

OVERVIEW = "meta-llama/Llama-3.1-8B-Instruct on 1 × NVIDIA GeForce RTX 5090 (SM120)"
TITLES = {**{name: name for name in PAGES}, "Overview": OVERVIEW}


def test_a_walk_over_all_six_pages_meets_titles_and_the_fixed_line_and_no_exception(app):
    app.run()
    for name, path in PAGES.items():
        app.switch_page(path).run()
        assert not app.exception, f"{name}: {app.exception[0].value}"
        assert [title.value for title in app.title] == [TITLES[name]]
        if name != "Submit results":
            fixed = fixed_line(app)
            assert fixed.startswith("meta-llama/Llama-3.1-8B-Instruct · 1 × rtx-5090 · vLLM "), name
            assert re.search(r"· matrix [0-9a-f]{8,}", fixed), f"{name}: no matrix digest in {fixed!r}"


def test_the_selector_is_the_same_on_every_page(app):
    app.run()
    asked = ["model", "gpu", "count", "tp", "framework", "release", "weights", "kv", "backend", "context"]
    for path in PAGES.values():
        app.switch_page(path).run()
        assert [box.key for box in app.sidebar.selectbox] == asked
        assert [box.key for box in app.sidebar.number_input] == ["requests"]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_gives_its_command_line(app, name):
    visit(app, name)
    commands = [code.value for code in app.code if code.value.startswith("./run ")]
    assert commands or name == "Submit results"
    if name == "Submit results":
        assert "./run submit" in text(app)


def test_a_choice_stays_when_the_page_changes(app):
    app.run()
    app.sidebar.selectbox(key="gpu").select("h200-sxm").run()
    app.switch_page(PAGES["Memory"]).run()
    assert app.sidebar.selectbox(key="gpu").value == "h200-sxm"
    assert "1 × h200-sxm" in fixed_line(app)
