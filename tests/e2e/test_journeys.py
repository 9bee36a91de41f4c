"""The journeys of a platform team, each from the front door to its answer."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.pages.reading import PAGES, seed

pytestmark = [pytest.mark.browser, pytest.mark.full]
NVFP4 = 4  # columns of the grid: auto, BF16, FP8, FP8 e4m3, NVFP4, NVFP4 4/6


def test_check_a_combination_and_take_the_answer_along(visitor):
    visitor.open()
    visitor.choose("Version", "0.27.0")
    assert visitor.answer().startswith("It fits, but it will not run. vLLM 0.27.0 refuses the NVFP4 cache on SM120")
    visitor.reads("Refused by")
    visitor.reads("Closest combinations that run")
    assert "Expected" in visitor.row("version 0.32.0 instead of 0.27.0")
    visitor.press(re.compile("Export"))
    with visitor.page.expect_download() as taken:
        visitor.page.get_by_role("button", name="Markdown").click()
    words = taken.value.path().read_text(encoding="utf-8")
    assert words.startswith("## meta-llama/Llama-3.1-8B-Instruct on rtx-5090")
    assert "refused" in words.lower()
    assert re.search(r"matrix [0-9a-f]{12}", words)


def test_the_json_export_is_the_answer_with_its_question(visitor):
    visitor.open("/memory?gpu=h200-sxm")
    visitor.press(re.compile("Export"))
    with visitor.page.expect_download() as taken:
        visitor.page.get_by_role("button", name="JSON").click()
    answer = json.loads(taken.value.path().read_text(encoding="utf-8"))["answer"]
    assert answer["schema"] == "nvdash.memory/1"
    assert answer["kv_bytes_per_token"] == 36_864  # 32 layers x 8 heads x 144 B
    assert answer["question"]["gpu"] == "h200-sxm"


def test_find_since_when_in_the_grid_and_open_the_cell_from_its_link(visitor):
    visitor.open("/matrix")
    visitor.cell(row=8, column=NVFP4)
    visitor.page.wait_for_url(re.compile("cell="))
    picked = re.search(r"cell=(sm\d+~\w+)", visitor.page.url)
    assert picked
    assert picked[1].endswith("~nvfp4")
    title = visitor.main.get_by_text(re.compile("SM.* × NVFP4 cache")).first.inner_text()
    visitor.page.reload()
    visitor.settle()
    visitor.reads(title)


def test_find_since_when_on_the_timeline(visitor):
    visitor.open("/matrix")
    visitor.view("Timeline")
    assert "matrix_view=Timeline" in visitor.page.url
    assert "Expected" in visitor.row("SM120", "0.32.0 to 0.33.0")


def test_compare_two_releases(visitor):
    visitor.open("/matrix")
    visitor.view("Changes")
    visitor.choose("From", "0.24.0")
    visitor.reads(re.compile(r"↑ gained [1-9]\d*"))
    assert "Expected" in visitor.row("SM120", "NVFP4", "Expected")
    visitor.choose("From", "0.33.0")
    visitor.reads("Same release on both sides.")


def test_size_a_deployment(visitor):
    visitor.open()
    for label, option in (
        ("Model", "meta-llama/Llama-3.1-70B-Instruct"),
        ("GPU", "h200-sxm"),
        ("GPU count", "4"),
        ("TP", "4"),
        ("Weights", "fp8"),
    ):
        visitor.choose(label, option)
    visitor.go("Memory")
    visitor.reads("all numbers are per GPU")
    visitor.unfold("The same as a table")
    assert re.search(r"\d+ to \d+", visitor.row("fp8 / NVFP4", "32K"))
    tokens = visitor.main.get_by_role("spinbutton", name="Tokens in use, over all requests")
    tokens.fill("90000000")
    tokens.press("Enter")
    visitor.reads(re.compile("−.* GiB, does not fit"))


def test_submit_a_run_twice_and_undo_it(visitor):
    name, content = seed("bench_serve_bf16.json")
    mine = (name, json.dumps({**json.loads(content), "duration": 2.5, "output_throughput": 307.2}).encode())
    visitor.open("/submit")
    visitor.upload(mine)
    visitor.reads("3 · Still missing")
    visitor.press("Submit run")
    visitor.reads(re.compile("✓ Stored as run"))
    run = re.search(r"run ([0-9a-f]{8})", visitor.answer())
    visitor.press("Submit something else")
    visitor.upload(mine)
    visitor.press("Submit run")
    visitor.reads(f"This run is already stored as {run[1]}.")
    visitor.press("Submit something else")
    visitor.upload((name, json.dumps({**json.loads(content), "duration": 3.5, "output_throughput": 219.4}).encode()))
    visitor.press("Submit run")
    visitor.press("Undo")
    visitor.reads(re.compile("is withdrawn. Submitting the same file again brings it back."))


def test_a_file_that_is_no_result_is_refused_with_the_reason(visitor):
    visitor.open("/submit")
    visitor.upload(("notes.txt", b"these are just notes\n"))
    visitor.reads("– Left out")
    visitor.reads(re.compile("is left out: expected"))
    expect(visitor.main.get_by_role("button", name="Submit run")).to_be_disabled()


def test_run_and_cancel_a_smoke_test(visitor):
    visitor.open("/smoke")
    visitor.main.get_by_role("button", name="Run 1 case").click()
    cancel = visitor.main.get_by_role("button", name="Cancel")
    cancel.click()
    visitor.main.get_by_text("Cancelled. Finished cases are kept.").wait_for(timeout=90_000)
    expect(visitor.main.get_by_role("button", name="Run 1 case")).to_be_enabled()


def test_an_old_link_is_never_another_model_in_silence(visitor):
    visitor.open("/memory?model=gone/model-7b&gpu=rtx-9999&release=0.1.0&kv=fp3&matrix=0123456789ab")
    for words in ("model “gone/model-7b”", "gpu “rtx-9999”", "kv cache “fp3”"):
        visitor.reads(re.compile(f"The link asks for {words}, which is not known here", re.IGNORECASE))
    visitor.reads(re.compile("0123456789ab"))
    visitor.press("Close the notice")
    expect(visitor.main.get_by_text("gone/model-7b")).to_have_count(0)


def test_a_link_restores_configuration_axes_filters_and_cell(visitor):
    link = "/matrix?gpu=h200-sxm&weights=fp8&matrix_rows=Backend&matrix_words=true&cell=FLASHINFER~nvfp4"
    visitor.open(link)
    visitor.reads(re.compile("FLASHINFER × NVFP4 cache"))
    expect(visitor.page.get_by_role("combobox", name="GPU", exact=True)).to_have_value("h200-sxm")
    expect(visitor.page.get_by_role("combobox", name="Rows", exact=True)).to_have_value("Backend")


def test_back_and_forward_walk_the_pages_with_the_configuration(visitor):
    visitor.open()
    visitor.choose("GPU", "b200-hgx")
    visitor.go("Memory")
    visitor.go("Trade-offs")
    walk(visitor, visitor.page.go_back, "Memory")
    visitor.reads(re.compile("Llama-3.1-8B-Instruct · 1 × b200-hgx"))
    walk(visitor, visitor.page.go_back, "meta-llama/Llama-3.1-8B-Instruct on 1 × NVIDIA B200 (HGX/DGX) (SM100)")
    walk(visitor, visitor.page.go_forward, "Memory")
    walk(visitor, visitor.page.go_forward, "Trade-offs")


def walk(visitor, step, title):
    """Go back or forward to a page; a page can have two places in the history, with and without the matrix digest."""
    for _ in range(3):
        step()
        visitor.settle()
        if visitor.page.get_by_role("heading", level=1).inner_text().strip() == title:
            return
    pytest.fail(f"{title} was not reached")


def test_reset_brings_the_defaults_back_and_cleans_the_link(visitor):
    visitor.open("/?gpu=h200-sxm&kv=fp8")
    visitor.page.get_by_role("button", name="Reset to defaults").click()
    visitor.settle()
    visitor.reads(re.compile("1 × NVIDIA GeForce RTX 5090"))
    assert "h200" not in visitor.page.url


def test_two_configurations_stand_side_by_side_and_the_link_carries_both(visitor):
    visitor.open()
    visitor.unfold("Compare with…")
    visitor.choose("Other KV cache", "fp8")
    visitor.reads(re.compile("nvfp4 against fp8"))
    assert "compare_kv=fp8" in visitor.page.url
    visitor.page.reload()
    visitor.settle()
    visitor.reads(re.compile("nvfp4 against fp8"))


def test_every_page_is_reached_and_used_by_keyboard_alone(visitor):
    page = visitor.open()
    page.keyboard.press("Tab")
    reached = tab_to(page, "Memory")
    assert reached, "Tab never reached the link to Memory"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Memory")
    visitor.settle()
    box = page.get_by_role("combobox", name="GPU", exact=True)
    box.focus()
    page.keyboard.type("h200-sxm")
    page.keyboard.press("Enter")
    visitor.reads(re.compile("1 × h200-sxm"))


def test_the_grid_is_walked_by_arrows_and_escape_clears_the_cell(visitor):
    page = visitor.open("/matrix")
    visitor.cell(0, 0)
    first = page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: "cell=" in url and url != first)
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "cell=" not in url)
    visitor.reads("Choose a cell to see why, who says so, and how to check it.")


def tab_to(page, words: str) -> bool:
    """Press Tab until the focused element carries these words."""
    for _ in range(60):
        if words in (page.evaluate("document.activeElement?.innerText") or ""):
            return True
        page.keyboard.press("Tab")
    return False


@pytest.mark.parametrize("visitor", [("phone", "light"), ("phone", "dark")], indirect=True)
def test_a_phone_reaches_every_page_through_the_menu(visitor):
    visitor.open()
    for name in PAGES:
        menu = visitor.page.get_by_test_id("stExpandSidebarButton")
        if menu.is_visible():
            menu.click()
        visitor.page.get_by_role("link", name=re.compile(rf"{name}$")).first.click()
        visitor.settle()
        if name != "Overview":
            expect(visitor.page.get_by_role("heading", level=1)).to_have_text(name)
