"""Readable by everyone: axe-core on every page and view, phones, a still selector, a silent console."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.full]
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
VIEWS = {
    "overview": "/",
    "overview refused": "/?release=0.27.0",
    "overview too large": "/?model=meta-llama/Llama-3.1-70B-Instruct",
    "overview compared": "/?compare_kv=fp8",
    "an old link": "/?model=gone/model&matrix=0123456789ab",
    "matrix": "/matrix",
    "matrix cell": "/matrix?cell=sm120~nvfp4",
    "matrix words": "/matrix?matrix_words=true&matrix_every=true",
    "timeline": "/matrix?matrix_view=Timeline",
    "changes": "/matrix?matrix_view=Changes&matrix_from=0.24.0",
    "memory": "/memory",
    "memory too large": "/memory?memory_tokens=90000000",
    "trade-offs": "/tradeoffs",
    "published": "/tradeoffs?tradeoffs_source=Published",
    "both sources": "/tradeoffs?tradeoffs_source=Both, side by side",
    "smoke": "/smoke",
    "last report": "/smoke?smoke_view=Last result",
    "history": "/smoke?smoke_view=History",
    "submit": "/submit",
}
THEMES = [("desktop", "light"), ("desktop", "dark")]
PHONES = [("phone", "light"), ("phone", "dark")]
ALL_TEXT = "document.querySelectorAll('[data-testid=\"stMain\"] details:not([open]) > summary').forEach(s => s.click())"


@pytest.mark.parametrize("visitor", THEMES, indirect=True, ids="-".join)
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_on_any_view(visitor, view):
    page = visitor.open(VIEWS[view])
    page.evaluate(ALL_TEXT)
    visitor.settle()
    found = Axe().run(page, options=WCAG).response["violations"]
    report = [
        f"{rule['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1].strip()}"
        for rule in found
        for node in rule["nodes"][:4]
    ]
    assert not report, "\n".join(report)


@pytest.mark.parametrize("visitor", PHONES, indirect=True, ids="-".join)
@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_never_scrolls_sideways(visitor, view):
    page = visitor.open(VIEWS[view])
    page.evaluate(ALL_TEXT)
    visitor.settle()
    wide = page.evaluate(
        """() => [document.documentElement, document.querySelector('[data-testid="stMain"]')]
              .map(e => e.scrollWidth - e.clientWidth)"""
    )
    assert max(wide) <= 0, f"{max(wide)} pixels too wide"


@pytest.mark.parametrize("visitor", THEMES, indirect=True, ids="-".join)
def test_the_selector_stays_where_it_is_on_every_page(visitor):
    visitor.open()
    boxes = visitor.page.locator('[data-testid="stSidebar"] [role="combobox"]')
    boxes.nth(8).wait_for()
    expect(boxes).to_have_count(10)
    first = [box.bounding_box() for box in boxes.all()]
    assert len(first) > 8
    for name in ("Support matrix", "Memory", "Trade-offs", "Smoke tests", "Submit results"):
        visitor.go(name)
        boxes.nth(len(first) - 1).wait_for()
        assert [box.bounding_box() for box in boxes.all()] == first, f"the selector moved on {name}"


def test_the_theme_of_the_reader_is_followed(browser, app_url):
    colours = set()
    for theme in ("light", "dark"):
        context = browser.new_context(color_scheme=theme)
        page = context.new_page()
        page.goto(app_url)
        expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=60_000)
        colours.add(page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"))
        context.close()
    assert colours == {"rgb(255, 255, 255)", "rgb(16, 21, 26)"}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_one_title_and_words_for_every_chart_and_table(visitor, view):
    visitor.open(VIEWS[view])
    expect(visitor.main.get_by_role("heading", level=1)).to_have_count(1)
    charts = visitor.main.locator("[data-testid=stVegaLiteChart]")
    expect(charts.locator(":scope:not(:has([aria-label]))")).to_have_count(0)  # drawn a moment after the script
    expect(visitor.main.locator("table:not([role=grid]):not([aria-label])")).to_have_count(0)  # a grid is a canvas
