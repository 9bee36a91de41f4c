"""Submit results: recognise, preview, fill the gaps, store, undo."""

import json
from pathlib import Path

import pytest

from nvdash.answers import results
from tests.pages.reading import press, seed, table, text, upload, visit

DATA = Path(__file__).parents[2] / "data"
RUN = ("bench_serve_bf16.json", "serve.log", "metrics_after_bench.txt")


def uploaded(app, *files):
    return upload(visit(app, "Submit results"), *files)


def test_before_an_upload_the_page_says_which_files_help_and_what_is_never_stored(app):
    visit(app, "Submit results")
    helpful = list(table(app, "From", "Helps")["From"])
    assert helpful == ["vLLM", "SGLang", "TensorRT-LLM", "Quality", "Any tool", "Kernels"]
    assert "Never stored: prompts, generated texts, keys, host names, absolute paths." in text(app)
    assert "No runs yet." in text(app)


def test_each_file_says_what_it_was_recognised_as(app):
    uploaded(app, *map(seed, RUN))
    files = table(app, "File", "Result", "Format", "Gives")
    assert list(files["Format"]) == ["vllm-bench-serve", "vllm-log", "metrics"]
    assert files["Result"].str.contains("● Recognised").all()


def test_the_upload_stands_beside_the_nearest_run_of_the_store(app):
    uploaded(app, *map(seed, RUN))
    metrics = table(app, "Metric", "This upload", "Nearest run", "Difference").set_index("Metric")
    assert metrics.loc["Time to first token, mean, ms", "This upload"] == "39.81"  # mean_ttft_ms 39.809
    assert metrics.loc["KV cache tokens", "This upload"] == "524,288"  # a count is printed in full
    assert metrics.loc["Time to first token, mean, ms", "Nearest run"] == "—"


def test_only_what_no_file_says_is_asked_and_unknown_is_an_answer(app):
    uploaded(app, *map(seed, RUN))
    asked = {box.key for box in app.main.selectbox} | {box.key for box in app.main.text_input}
    assert {"submit_gpu_count", "submit_weight_format", "submit_prefix_cache_state"} <= asked
    assert not {"submit_gpu", "submit_framework", "submit_version"} & asked  # the files say them
    assert app.main.selectbox(key="submit_gpu_count").options[0] == "I do not know"


def test_a_submitted_run_is_listed_and_its_undo_takes_it_out(app):
    uploaded(app, *map(seed, RUN))
    press(app, "Submit run")
    assert app.success[0].value == "✓ Stored as run 4db01afb."
    assert list(table(app, "Run", "Model")["Run"]) == ["`4db01afb`"]
    press(app, "Undo")
    assert "Run 4db01afb is withdrawn." in app.info[0].value
    assert "No runs yet." in text(app)
    assert results.runs({"withdrawn": True})["total"] == 1


def test_typed_fields_are_stored_with_the_run(app):
    uploaded(app, *map(seed, RUN))
    app.main.selectbox(key="submit_weight_format").select("bf16")
    app.main.text_input(key="submit_dataset").input("random")
    press(app, "Submit run")
    run = results.run("4db01afb")
    assert run["weight_format"] == "bf16"
    assert run["dataset"] == "random"


def test_the_same_file_twice_adds_nothing_and_says_so(app):
    uploaded(app, seed(RUN[0]))
    press(app, "Submit run")
    press(app, "Submit something else")
    upload(app, seed(RUN[0]))
    press(app, "Submit run")
    assert any("already stored as 4db01afb" in line.value for line in app.info)
    assert results.runs()["total"] == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.json", b""),
        ("cut.json", b'{"completed": 24, "mean_ttft_ms": 39.'),
        ("latin.json", b'{"model_id": "\xff\xfe"}'),
        ("twice.json", b'{"completed": 1, "completed": 2}'),
        ("photo.png", b"\x89PNG\r\n\x1a\n" + bytes(64)),
        ("other.json", b'{"hello": "world"}'),
    ],
)
def test_a_file_that_is_no_result_is_left_out_with_the_reason_and_cannot_be_submitted(app, name, content):
    uploaded(app, (name, content))
    assert not app.exception
    assert "– Left out" in table(app, "File", "Result")["Result"].iloc[0]
    assert "is left out: expected " in app.warning[0].value
    button = next(button for button in app.main.button if button.label == "Submit run")
    assert button.disabled


def test_numbers_that_are_not_finite_are_refused(app):
    broken = {**json.loads(seed(RUN[0])[1]), "mean_ttft_ms": float("nan")}
    uploaded(app, ("nan.json", json.dumps(broken).encode()))
    assert not app.exception
    assert "– Left out" in table(app, "File", "Result")["Result"].iloc[0] or app.warning


def test_a_smoke_report_asks_nothing_and_is_stored(app):
    report = (DATA / "smoke" / "reference-nvfp4.json").read_bytes()
    uploaded(app, ("report.json", report))
    assert "3 · Still missing" not in text(app)
    press(app, "Submit report")
    assert "Smoke report stored as " in app.success[0].value


def test_html_in_every_text_of_a_file_is_shown_as_text(app):
    evil = "<img src=x onerror=alert(1)>"
    result = json.loads(seed(RUN[0])[1])
    hostile = {name: evil if isinstance(value, str) else value for name, value in result.items()}
    uploaded(app, (f"{evil}.json", json.dumps({**hostile, "date": result["date"]}).encode()))
    assert not app.exception
    assert evil not in text(app)
    press(app, "Submit run")
    assert evil not in text(app)


def test_markdown_in_a_file_is_text_and_never_a_link(app):
    hostile = {**json.loads(seed(RUN[0])[1]), "model_id": "[click](http://x.example) **bold**"}
    uploaded(app, ("hostile.json", json.dumps(hostile).encode()))
    assert not app.exception
    assert "[click](http" not in text(app)
    press(app, "Submit run")
    assert "[click](http" not in text(app)


TABLE = (
    "table.csv",
    b"ISL,Throughput,TTFT (s),<b>note</b>\n1024,3575.5,0.25,[x](http://x.example)\n2048,3544.5,1.5,\n",
)


def test_a_table_in_no_known_format_is_mapped_column_by_column_and_stored(app):
    uploaded(app, TABLE)
    assert "This table is in no known format." in text(app)
    assert table(app, "File", "Result")["Result"].iloc[0] == ":blue-badge[◇ Name its columns]"
    boxes = [app.main.selectbox(key=f"submit_column_0_{place}") for place in range(4)]
    assert [box.value for box in boxes] == ["Leave out"] * 4
    boxes[0].select("isl_target:tokens")
    boxes[1].select("output_tok_s:tokens/s")
    boxes[2].select("ttft_mean_ms:s")
    press(app, "Read these columns")
    assert table(app, "File", "Format")["Format"].iloc[0] == "csv-mapped"
    metrics = table(app, "Metric", "This upload").set_index("Metric")
    assert metrics.loc["Time to first token, mean, ms", "This upload"] == "250"
    press(app, "Submit run")
    assert app.success[0].value.startswith("✓ Stored 2 runs: ")
    assert results.runs()["total"] == 2


def test_a_column_that_is_named_like_a_field_is_suggested_in_the_unit_of_the_field(app):
    uploaded(app, ("table.csv", b"ttft_mean_ms,other\n250,1\n"))
    assert app.main.selectbox(key="submit_column_0_0").value == "ttft_mean_ms:ms"
    assert app.main.selectbox(key="submit_column_0_1").value == "Leave out"


def test_two_columns_for_one_field_are_refused_and_can_be_chosen_again(app):
    uploaded(app, TABLE)
    for place in (0, 1):
        app.main.selectbox(key=f"submit_column_0_{place}").select("isl_target:tokens")
    press(app, "Read these columns")
    assert any("ISL and Throughput are both isl" in line.value for line in app.warning)
    app.main.selectbox(key="submit_column_0_1").select("Leave out")
    press(app, "Read these columns")
    assert table(app, "File", "Format")["Format"].iloc[0] == "csv-mapped"


def test_names_and_cells_of_a_table_are_text(app):
    uploaded(app, TABLE)
    assert "](http" not in text(app)
    assert app.main.selectbox(key="submit_column_0_3").label == r"\<b\>note\</b\>"


def test_a_failed_run_keeps_its_counts_and_says_why_it_has_no_speeds(app):
    failed = {**json.loads(seed(RUN[0])[1]), "completed": 0, "num_prompts": 24}
    uploaded(app, ("failed.json", json.dumps(failed).encode()))
    assert any("0 of 24 requests finished" in line.value for line in app.warning)
    assert "No speed or capacity in these files." in text(app)
    press(app, "Submit run")
    run = results.run(results.runs()["runs"][0]["run_id"])
    assert run["requests_completed"] == 0
    assert "output_tok_s" not in run


def test_a_sweep_is_shown_in_part_stored_whole_and_undone_whole(app):
    result = json.loads(seed(RUN[0])[1])
    lines = "\n".join(json.dumps({**result, "duration": result["duration"] + step}) for step in range(30))
    uploaded(app, ("sweep.jsonl", lines.encode()))
    assert "and 10 more runs of these files" in text(app)
    assert len(app.warning) <= 6
    assert any(box.label.endswith(" more remarks") for box in app.expander)
    press(app, "Submit run")
    assert app.success[0].value.startswith("✓ Stored 30 runs: ")
    assert app.success[0].value.endswith(" and 22 more.")
    assert results.runs()["total"] == 30
    press(app, "Undo")
    assert "30 runs: " in app.info[0].value
    assert results.runs()["total"] == 0
