"""Trade-offs: runs of this store, published reports apart, and the plan."""

from nvdash.store import adding
from nvdash.store.adding import FileMark, NewRun
from nvdash.store.identity import run_id
from tests.pages.reading import table, text, visit


def test_an_empty_store_says_so_and_leads_on(app):
    visit(app, "Trade-offs")
    assert app.info[0].value.startswith("No four-way experiment yet for meta-llama/Llama-3.1-8B-Instruct on rtx-5090.")
    assert "The store is empty." in text(app)
    assert "Submit results" in [link.label for link in app.get("page_link")]


def test_runs_of_other_systems_are_named_even_where_they_say_little(app):
    file = FileMark("bench.json", "vllm-bench-serve")
    told = {"model": "Qwen/Qwen3-32B", "model_base": "Qwen/Qwen3-32B", "gpu": "b200-hgx", "framework": "vllm"}
    adding.add([NewRun("a" * 64, told, file), NewRun("b" * 64, {"output_tok_s": 1.0}, file)])
    visit(app, "Trade-offs")
    systems = table(app, "Model", "GPU", "Runs")
    assert systems.values.tolist() == [["Qwen/Qwen3-32B", "b200-hgx", "1"], ["unknown", "unknown", "1"]]


def test_one_matched_set_is_shown_and_another_can_be_chosen(app):
    adding.add(run(cache, users) for users in (1, 4) for cache in ("bf16", "nvfp4"))
    visit(app, "Trade-offs")
    assert "2 matched sets out of 4 runs" in app.success[0].value
    first, second = app.selectbox(key="tradeoffs_set").options
    assert first.startswith("vLLM 0.33.0 · 1 GPU · chat, concurrency 1,")
    ratios = table(app, "Run", "TPOT mean, ms").set_index("Run")["TPOT mean, ms"]
    assert ratios["**Cache only**"] == "9 · 0.90 ×"
    app.selectbox(key="tradeoffs_set").select(second).run()
    ratios = table(app, "Run", "TPOT mean, ms").set_index("Run")["TPOT mean, ms"]
    assert ratios["**Cache only**"] == "36 · 0.90 ×"


def run(cache: str, users: int) -> NewRun:
    """A run with every control told; the cache takes a tenth off the time per token."""
    values = {
        "model_base": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "rtx-5090",
        "gpu_count": 1,
        "tp": 1,
        "framework": "vllm",
        "version": "0.33.0",
        "weight_format": "bf16",
        "kv_cache_dtype_resolved": cache,
        "attention_backend": "FLASHINFER",
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "enable_chunked_prefill": True,
        "prefix_cache_state": "off",
        "spec_method": "none",
        "workload": "chat",
        "max_concurrency": users,
        "request_rate_rps": "inf",
        "num_prompts": 200,
        "running_avg": float(users),
        "preemptions": 0,
        "prefix_hit_rate": 0.0,
        "tpot_mean_ms": (10.0 if cache == "bf16" else 9.0) * users,
    }
    return NewRun(run_id(values), values, FileMark("bench.json", "vllm-bench-serve"))


def test_published_reports_stand_apart_and_claim_nothing_of_ours(app):
    visit(app, "Trade-offs", tradeoffs_source="Published")
    assert app.info[0].value.startswith("◇ ")
    assert "None was measured here; no general conclusion follows from any of them." in app.info[0].value
    numbers = table(app, "Metric", "Value", "KV cache", "Measured")
    assert (numbers["Value"].str.len() > 0).all()
    assert "Provenance: read in the source" in text(app)
    assert "Which runs next?" not in text(app)


def test_published_numbers_can_be_limited_to_a_cache(app):
    visit(app, "Trade-offs", tradeoffs_source="Published")
    before = len(app.table)
    app.selectbox(key="published_cache").select("nvfp4").run()
    same = [line.value for line in app.caption if "Provenance: " in line.value]
    assert same
    assert all(line.startswith("KV cache: NVFP4 · ") for line in same)
    assert len(app.table) <= before


def test_no_report_for_a_model_is_said(app):
    visit(app, "Trade-offs", tradeoffs_source="Published", published_scope="This model and GPU")
    assert "No report matches these filters." in text(app)


def test_both_sources_stand_side_by_side_under_headlines_of_their_own(app):
    visit(app, "Trade-offs", tradeoffs_source="Both, side by side")
    said = [line.value for line in app.info]
    assert any(line.startswith("No four-way experiment yet") for line in said)
    assert any(line.startswith("◇ ") for line in said)


def test_the_plan_lists_the_four_configurations_with_scripts_or_the_reason_for_none(app):
    visit(app, "Trade-offs")
    cells = table(app, "Configuration", "Weights", "Cache", "Verdict", "Script").set_index("Configuration")
    four = ["**Wide weights, wide cache**", "**Weights only**", "**Cache only**", "**Both**"]
    assert list(cells.index)[:4] == four
    assert (cells["Script"].str.len() > 3).all()
    assert any(code.value.startswith("#!/usr/bin/env bash") for code in app.code)
    assert any(code.value.startswith("./run plan --framework vllm") for code in app.code)
