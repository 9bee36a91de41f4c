"""Empty, partial and broken: every page says what is wrong and what to do, and never shows a traceback."""

import os
from pathlib import Path

import pytest
import streamlit as st

from tests.pages.reading import PAGES, table, text, visit

OUR_MODEL = """
models:
  - name: our/small-8b
    source: our own config
    config: {architectures: [LlamaForCausalLM], model_type: llama, hidden_size: 512, num_hidden_layers: 4,
      num_attention_heads: 8, num_key_value_heads: 2, head_dim: 64, intermediate_size: 1024, vocab_size: 1000,
      max_position_embeddings: 32768, torch_dtype: bfloat16}
    checkpoints: []
"""


def add_overlay(monkeypatch, folder):
    """One more root of facts behind those that are there already."""
    roots = [os.environ.get("NVDASH_MATRIX_PATH", ""), str(folder)]
    monkeypatch.setenv("NVDASH_MATRIX_PATH", os.pathsep.join(filter(None, roots)))


@pytest.mark.parametrize("name", PAGES)
def test_a_damaged_store_is_named_in_words_on_every_page(app, name):
    store = Path(os.environ["NVDASH_STORE"])
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(b"this is no database " * 400)
    st.cache_data.clear()
    visit(app, name)
    assert not app.exception
    said = "\n".join(line.value for line in app.error)
    assert "nvdash.duckdb" in said
    assert "expected" in said


@pytest.mark.parametrize("name", PAGES)
def test_a_slip_in_an_overlay_is_told_with_file_and_line_and_never_as_a_traceback(app, name, tmp_path, monkeypatch):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "ours.yaml").write_text(
        "- id: ours\n  when: {backend: FLASHINFER}\n  since: 0.10\n  stage: [decode]\n  verdict: expected\n"
    )
    add_overlay(monkeypatch, tmp_path)
    visit(app, name)
    assert not app.exception
    said = "\n".join(line.value.replace("\\", "") for line in app.main.error)  # not in the sidebar: a phone hides it
    assert "ours.yaml:3" in said, said
    assert "0.1" in said


def test_several_slips_of_a_file_are_told_together_each_with_its_line(app, tmp_path, monkeypatch):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "ours.yaml").write_text("- id: ours\n  when: {}\n  since: 0.10\n  colour: red\n")
    add_overlay(monkeypatch, tmp_path)
    app.run()
    assert not app.exception
    assert "problems; nothing that it says is shown." in app.main.error[0].value
    places = table(app, "Place", "Expected", "Found", "Next step")["Place"].str.replace("\\", "")
    assert places.str.contains("ours.yaml:3").any()
    assert places.str.contains("ours.yaml:4").any()


def test_a_slip_in_the_default_framework_leaves_the_others_and_the_published_numbers(app, tmp_path, monkeypatch):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "ours.yaml").write_text("- id: ours\n  since: 0.10\n")
    add_overlay(monkeypatch, tmp_path)
    visit(app, "Trade-offs", tradeoffs_source="Published")
    assert not app.exception
    assert "Answers about vLLM are hidden: its facts have problems." in [line.value for line in app.warning]
    assert "vllm" not in app.selectbox(key="framework").options
    assert "published numbers in" in text(app)


def test_a_slip_in_one_framework_leaves_answers_about_another(app, tmp_path, monkeypatch):
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "ours.yaml").write_text("- id: ours\n  since: 0.10\n")
    add_overlay(monkeypatch, tmp_path)
    app.run()
    assert not app.exception
    assert "of 32K fit" in text(app)


def test_a_model_of_an_overlay_can_be_chosen(app, tmp_path, monkeypatch):
    (tmp_path / "models.yaml").write_text(OUR_MODEL)
    add_overlay(monkeypatch, tmp_path)
    visit(app, "Memory", model="our/small-8b")
    assert not app.exception
    # 4 layers x 2 KV heads x 2 x 64 values x 4.5 bits / 8 = 576 B
    assert "576" in text(app)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("model", "nonsense/none", "The link asks for model “nonsense/none”, which is not known here."),
        ("gpu", "rtx-9999", "The link asks for gpu “rtx-9999”, which is not known here."),
        ("release", "0.99.0", "The link asks for version “0.99.0”, which is not known here."),
        ("kv", "fp3", "The link asks for kv cache “fp3”, which is not known here."),
        ("backend", "NONE_SUCH", "The link asks for attention backend “NONE_SUCH”, which is not known here."),
    ],
)
def test_a_link_with_an_unknown_value_gets_a_notice_on_the_page_it_opens(app, key, value, words):
    visit(app, "Memory", **{key: value})
    assert not app.exception
    said = [line.value.replace("\\", "") for line in app.warning]
    assert any(line.startswith(words) for line in said), said


def test_what_a_link_says_is_never_read_as_markdown(app):
    visit(app, "Overview", model="[win](https://example.org)")
    assert any(r"\[win\]\(https\://example.org\)" in line.value for line in app.warning)


def test_a_link_with_an_unknown_name_gets_a_notice(app):
    visit(app, "Overview", requests="4", weigths="fp8")
    said = "\n".join(line.value for line in app.warning)
    assert "weigths=fp8, which no page reads" in said
    assert "weights" in said
    assert "requests" not in said


def test_the_notice_of_a_link_can_be_closed(app):
    visit(app, "Overview", model="nonsense/none")
    next(button for button in app.button if button.label == "Close the notice").click().run()
    assert not app.warning


def test_a_link_of_another_matrix_says_so(app):
    visit(app, "Overview", matrix="0123456789ab")
    assert any("0123456789ab" in line.value for line in [*app.warning, *app.info])


def test_a_framework_without_facts_on_this_gpu_is_unknown_and_not_a_no(app):
    visit(app, "Overview", gpu="arc-pro-b60")
    assert not app.exception
    assert "unknown" in text(app).lower()


@pytest.mark.parametrize("count", ["1", "2", "16"])
def test_every_gpu_count_offers_only_tensor_sizes_that_divide_into_it(app, count):
    visit(app, "Overview", count=count)
    assert [int(size) for size in app.sidebar.selectbox(key="tp").options] == [
        size for size in (1, 2, 4, 8, 16) if size <= int(count)
    ]


@pytest.mark.parametrize("name", ["Overview", "Support matrix", "Memory", "Trade-offs"])
def test_a_question_that_no_engine_takes_keeps_the_title_and_says_why(app, name):
    visit(app, name, model="Qwen/Qwen2.5-7B-Instruct", count="8", tp="8")
    assert not app.exception
    assert app.title[0].value.startswith("Qwen/Qwen2.5-7B-Instruct" if name == "Overview" else name)
    assert len(app.title) == 1


@pytest.mark.parametrize(
    "model", ["deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct"]
)
def test_a_cache_without_known_bytes_leaves_the_other_dtypes_sized(app, model):
    visit(app, "Memory", model=model, gpu="h200-sxm", count="8", tp="8", kv="nvfp4")
    assert not app.exception
    growth = table(app, "Cache", "Bytes per token", "Verdict").set_index("Cache")
    assert growth.loc["FP8", "Bytes per token"] != "unknown"
    assert "Unknown" not in growth.loc["NVFP4", "Verdict"]


@pytest.mark.parametrize(
    ("name", "said"), [("Trade-offs", "No plan is written for TensorRT-LLM"), ("Smoke tests", "No smoke test drives")]
)
def test_a_framework_without_a_plan_or_an_adapter_is_told_not_refused(app, name, said):
    visit(app, name, framework="tensorrt-llm")
    assert not app.exception
    assert not app.error
    assert any(line.value.startswith(said) for line in app.info)
