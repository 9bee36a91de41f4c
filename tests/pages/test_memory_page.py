"""Memory: what is fixed, what grows, with the reader's own numbers."""

from tests.pages.reading import chart_alts, press, start_log, table, text, visit

LLAMA_70B = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h200-sxm",
    "count": "4",
    "tp": "4",
    "weights": "fp8",
    "release": "0.33.0",
}


def test_weights_and_cache_stand_in_tiles_of_their_own(app):
    visit(app, "Memory")
    labels = [line.value for line in app.caption]
    assert "Weights, fixed" in labels
    assert "KV cache now, grows (NVFP4)" in labels
    assert labels.index("Weights, fixed") < labels.index("KV cache now, grows (NVFP4)")


def test_the_formula_has_the_numbers_of_this_model(app):
    visit(app, "Memory", **{**LLAMA_70B, "count": "1", "tp": "1"})
    # 80 layers x 8 KV heads x (2 x 128 values at 4.5 bits = 144 B) = 92,160 B
    formula = app.markdown[-1].value if "KV heads" in app.markdown[-1].value else text(app)
    assert "80 full × 8 KV heads × 144 B" in formula
    assert "92160 B per token" in formula.replace(",", "")


def test_32k_sequences_of_llama_70b_on_four_h200_are_ranges_under_three_caches(app):
    visit(app, "Memory", **LLAMA_70B)
    grid = table(app, "Weights / cache", "Context", "Requests").set_index(["Weights / cache", "Context"])["Requests"]
    wide, fp8, nvfp4 = (grid[f"fp8 / {name}", "32K"] for name in ("16-bit", "FP8", "NVFP4"))
    low = [int(text.split(" to ")[0].replace(",", "")) for text in (wide, fp8, nvfp4)]
    assert " to " in wide
    assert low[1] in (2 * low[0], 2 * low[0] + 1)
    assert 3.5 < low[2] / low[0] < 3.7  # 16 bits against 4.5 bits: 3.56 x


def test_bytes_per_token_of_each_cache_carry_their_verdict(app):
    visit(app, "Memory", **LLAMA_70B)
    caches = table(app, "Cache", "Bytes per token", "Verdict")
    # one of four ranks holds 2 of 8 KV heads: 327,680 / 4, 163,840 / 4, 92,160 / 4
    assert list(caches["Bytes per token"]) == ["81,920", "40,960", "23,040"]
    assert caches["Verdict"].str.contains("badge").all()


def test_a_refused_dtype_is_never_sized_as_if_it_ran(app):
    visit(app, "Memory", release="0.27.0")
    caches = table(app, "Cache", "KV cache tokens", "Verdict").set_index("Cache")
    assert caches.loc["NVFP4", "KV cache tokens"].startswith("would be ")
    assert "✕ Refused" in caches.loc["NVFP4", "Verdict"]
    assert "refuses this combination" in app.error[0].value


def test_more_tokens_than_the_pool_holds_are_said_in_words(app):
    visit(app, "Memory", memory_tokens="1000000")
    # 1,000,000 tokens x 36,864 B = 34.3 GiB, more than a 5090 has left beside 15 GiB of weights
    assert "**34.3 GiB**" in text(app)
    assert "does not fit" in text(app)


def test_every_budget_item_has_kind_range_and_source(app):
    visit(app, "Memory")
    items = table(app, "Item", "Kind", "Typical", "Range", "Source")
    assert {"fixed", "grows", "total"} == set(items["Kind"])
    assert (items["Source"].str.len() > 3).all()


def test_charts_name_their_finding(app):
    visit(app, "Memory")
    growth, requests = chart_alts(app)
    assert "16-bit: full at" in growth
    assert "NVFP4: full at" in growth
    assert requests.startswith("At 32K: ")


def test_the_utilisation_changes_the_pool_and_the_command(app):
    visit(app, "Memory", memory_fraction="0.5")
    assert "0.50 of total memory" in text(app) or "0.5" in app.code[-1].value
    assert "--gpu-memory-utilization 0.5" in app.code[-1].value


def compared(app, tokens, **link):
    """The numbers of a start-up log beside their replay."""
    visit(app, "Memory", **link)
    log = ("server.log", start_log(tokens).encode(), "text/plain")
    app.file_uploader(key="memory_log_file").set_value(log)
    press(app, "Compare with this log")
    return table(app, "Number", "Predicted", "Printed", "Result", "Cause").set_index("Number")


def test_a_log_that_agrees_is_called_consistent(app):
    # 20 GiB / (131,072 B per token x 16) = 10,240 blocks = 163,840 tokens; "20.00" stands for 19.995 to 20.005 GiB
    rows = compared(app, 163_840)
    assert rows.loc["KV cache tokens", "Predicted"] == "163,792 to 163,872"
    assert rows.loc["KV cache tokens", "Printed"] == "163,840"
    assert rows.loc["KV cache tokens", "Result"] == "✓ consistent"
    # 163,792 and 163,872 tokens by the 8,192 of one request
    assert rows.loc["Requests of full length at once", "Predicted"] == "19.994 to 20.004"
    measured = app.table[-1].value.set_index("Item")
    assert (measured.loc["KV cache pool", "Typical"], measured.loc["KV cache pool", "Source"]) == (
        "20.00 GiB",
        "measured",
    )


def test_a_log_that_says_another_number_is_told_why(app):
    rows = compared(app, 327_680)  # twice the tokens in the same bytes: FP8 was stored
    assert "silent fp8" in rows.loc["KV cache tokens", "Cause"]
    assert any("agree only with this explanation" in line.value for line in app.info)


def test_the_log_says_which_model_it_is_whatever_the_sidebar_shows(app):
    rows = compared(app, 163_840, model="Qwen/Qwen3-8B")
    assert "Replayed as meta-llama/Llama-3.1-8B-Instruct, vLLM 0.11.0." in text(app)
    assert rows.loc["KV cache tokens", "Result"] == "✓ consistent"


def test_a_log_that_names_no_model_asks_for_it(app):
    visit(app, "Memory")
    nameless = start_log(163_840).replace("model='meta-llama/Llama-3.1-8B-Instruct', ", "")
    app.file_uploader(key="memory_log_file").set_value(("server.log", nameless.encode(), "text/plain"))
    press(app, "Compare with this log")
    assert "expected the name of its model" in app.error[0].value
    app.main.selectbox(key="memory_log_model").select("meta-llama/Llama-3.1-8B-Instruct")
    press(app, "Compare with this log")
    assert not app.error
    assert table(app, "Number", "Result").set_index("Number").loc["KV cache tokens", "Result"] == "✓ consistent"


def test_no_log_is_asked_for_and_not_an_error(app):
    visit(app, "Memory")
    press(app, "Compare with this log")
    assert "Choose a log file first." in [line.value for line in app.info]
    assert not app.error
