"""Overview: one configuration answers at a glance."""

from tests.pages.reading import table, text, visit

LLAMA_70B = {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "h200-sxm", "weights": "fp8"}


def test_the_first_line_says_whether_it_fits_and_runs_and_how_many_requests_fit(app):
    app.run()
    sentence = app.info[0].value
    assert sentence.startswith("It fits and should run. No run in this store yet.")
    assert "of 32K fit; you asked for 1." in sentence


def test_four_tiles_ask_the_four_questions_and_unmeasured_is_said(app):
    app.run()
    said = text(app)
    for question in ("Does it fit?", "Is it supported?", "What was measured?", "Which pool binds?"):
        assert question in said
    assert "Not measured for this model" in said
    assert "No CUDA kernel path is validated in this store yet." in said


def test_every_stage_has_its_verdict_and_source_line(app):
    app.run()
    stages = table(app, "Stage", "Status", "Evidence")
    assert list(stages["Stage"]) == ["**Weight GEMM**", "**Cache write**", "**Prefill**", "**Decode**"]
    assert stages["Status"].str.contains("◐ Expected").all()
    assert stages["Evidence"].iloc[2].startswith("▮▮▯▯ source `flashinfer.py:")


def test_a_refused_configuration_shows_who_refuses_and_what_runs_instead(app):
    visit(app, "Overview", release="0.27.0")
    assert app.error[0].value.startswith("It fits, but it will not run. vLLM 0.27.0 refuses the NVFP4 cache on SM120")
    said = text(app)
    assert "Refused by" in said
    assert "**Selector**" in said
    assert "`flashinfer.py:" in said
    nearest = table(app, "Change one thing", "Then")
    assert "version 0.32.0 instead of 0.27.0" in list(nearest["Change one thing"])
    said_once = table(app, "Stage", "Path or reason")["Path or reason"]
    assert list(said_once.iloc[2:]) == ["as for Cache write"] * 2


def test_weights_that_do_not_fit_are_the_first_thing_said(app):
    visit(app, "Overview", model=LLAMA_70B["model"])
    assert app.error[0].value.startswith("It does not fit. Weights need ")
    assert "**GPU memory**: the weights exceed what the engine may use." in text(app)


def test_the_next_steps_carry_the_configuration_along(app):
    visit(app, "Overview", **LLAMA_70B)
    links = {
        link.label: dict(pair.split("=") for pair in link.proto.query_string.split("&"))
        for link in app.get("page_link")
    }
    assert links["Run a smoke test"]["gpu"] == "h200-sxm"
    assert links["Run a smoke test"]["model"].endswith("Llama-3.1-70B-Instruct")
    assert "matrix" in links["Run a smoke test"]


def test_a_second_configuration_stands_beside_the_first_with_the_axes_that_differ(app):
    app.run()
    app.selectbox(key="compare_kv").select("fp8").run()
    both = table(app, "This", "Other").set_index("")
    # 32 layers x 2 x 8 heads x 128: 73,728 B in NVFP4 (4.5 bits), 131,072 B would be BF16 / 2 = 65,536 in FP8
    assert both.loc["**Bytes per token, one GPU**", "This"] == "36,864"
    assert both.loc["**Bytes per token, one GPU**", "Other"] == "65,536"
    assert any("**kv**: nvfp4 against fp8" in line.value for line in app.markdown)


def test_a_link_to_a_comparison_opens_it(app):
    visit(app, "Overview", compare_gpu="h200-sxm")
    assert app.selectbox(key="compare_gpu").value == "h200-sxm"
    assert any("**gpu**: rtx-5090 against h200-sxm" in line.value for line in app.markdown)


def test_reset_puts_every_selector_back(app):
    visit(app, "Overview", **LLAMA_70B)
    next(button for button in app.sidebar.button if button.label == "Reset to defaults").click().run()
    assert app.sidebar.selectbox(key="model").value == "meta-llama/Llama-3.1-8B-Instruct"
    assert app.sidebar.selectbox(key="gpu").value == "rtx-5090"


def test_the_checkpoint_to_deploy_and_what_auto_does_with_its_cache_are_named(app):
    visit(app, "Overview", model="moonshotai/Kimi-K2.5", gpu="b200-hgx", count="8", tp="8", weights="nvfp4", kv="auto")
    said = text(app).replace("\\", "")
    assert "The nvfp4 weights are those of nvidia/Kimi-K2.5-NVFP4 (modelopt, W4A4)" in said
    assert "Auto becomes FP8 e4m3." in said


def test_auto_over_a_config_that_was_not_read_stays_unknown(app):
    visit(app, "Overview", weights="nvfp4", kv="auto")
    said = text(app).replace("\\", "").lower()
    assert "what auto becomes is unknown: the checkpoint's kv_cache_scheme was not read." in said
