"""A run is stored once, by what was measured."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.errors import UnknownError, UsageError
from nvdash.store import adding, lifecycle, runs
from nvdash.store.identity import run_id, shown


def test_a_run_comes_back_as_it_was_measured(store, new_run):
    run = new_run(
        quality=[{"task": "gsm8k", "metric": "exact_match", "filter": "strict-match", "value": 0.97, "n_shot": 5}],
        kernels=[{"name": "fmha", "calls": 12, "time_us": 34.5}],
        request_rate_rps="inf",
        ttft_mean_ms=39.8,
        enable_prefix_caching=False,
        case="odd",
        tp=1,
    )
    assert adding.add([run]).added == (run.run_id,)
    stored = runs.get(shown(run.run_id))
    assert (stored["ttft_mean_ms"], stored["request_rate_rps"], stored["tp"]) == (39.8, "inf", 1)
    assert stored["enable_prefix_caching"] is False
    assert "tpot_mean_ms" not in stored
    assert stored["extras"] == {"case": "odd"}
    assert stored["quality"][0]["value"] == 0.97
    assert stored["kernels"] == [{"name": "fmha", "calls": 12, "time_us": 34.5}]
    assert stored["submissions"][0]["file"] == "bench.json"


def test_submitting_twice_adds_nothing_and_says_so(store, new_run):
    first = adding.add([new_run(), new_run(output_tok_s=101.0)])
    again = adding.add([new_run(), new_run(output_tok_s=102.0), new_run(output_tok_s=102.0)])
    assert len(first.added) == 2
    assert again.added == (new_run(output_tok_s=102.0).run_id,)
    assert again.duplicates == (new_run().run_id, new_run(output_tok_s=102.0).run_id)
    assert runs.count() == 3


def test_side_rows_of_a_duplicate_are_not_stored_again(store, new_run):
    quality = [{"task": "a", "metric": "acc", "value": 0.5}]
    adding.add([new_run(quality=quality)])
    adding.add([new_run(quality=quality)])
    assert len(runs.get(new_run(quality=quality).run_id)["quality"]) == 1


def test_a_withdrawn_run_comes_back_when_it_is_submitted_again(store, new_run):
    adding.add([new_run()])
    lifecycle.withdraw(new_run().run_id, "wrong driver")
    assert runs.count() == 0
    again = adding.add([new_run()])
    assert (again.added, again.reinstated) == ((), (new_run().run_id,))
    audit = runs.get(new_run().run_id)["audit"]
    assert [(row["action"], row["reason"]) for row in audit] == [
        ("withdraw", "wrong driver"),
        ("reinstate", "submitted again"),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("output_tok_s", math.nan), ("output_tok_s", math.inf), ("tp", -1), ("tp", 1.5), ("tp", 2**60), ("tp", "four")],
)
def test_a_value_that_cannot_be_is_refused_and_nothing_is_stored(store, new_run, name, value):
    bad = new_run()
    bad.values[name] = value
    with pytest.raises(UsageError, match=name):
        adding.add([new_run(output_tok_s=1.0), bad])
    assert runs.count() == 0


def test_sql_in_a_text_is_only_text(store, new_run):
    evil = "x'); DROP TABLE runs; --"
    adding.add([new_run(model=evil)])
    assert [run["model"] for run in runs.find({"model": evil})] == [evil]


def test_a_filter_on_unknown_finds_only_runs_that_do_not_say(store, new_run):
    adding.add([new_run(), new_run(weight_format="nvfp4")])
    assert [run.get("weight_format") for run in runs.find({"weight_format": None})] == [None]
    assert len(runs.find({"weight_format": ["nvfp4", "bf16"]})) == 1


def test_an_unknown_run_and_a_short_id_are_refused(store):
    with pytest.raises(UnknownError):
        runs.get("00000000")
    with pytest.raises(UsageError, match="8 hex digits"):
        runs.get("0000")


def test_the_id_ignores_how_a_number_is_written_and_what_a_file_is_called():
    assert run_id({"tp": 4, "label": "a", "x": None}) == run_id({"tp": 4.0, "label": "b"})
    assert run_id({"tp": 4}) != run_id({"tp": 5})
    assert run_id({"flag": True}) != run_id({"flag": 1})


def test_the_id_ignores_the_order_of_quality_rows():
    rows = [{"task": "a", "value": 1.0}, {"task": "b", "value": 2.0}]
    assert run_id({}, rows) == run_id({}, rows[::-1])


VALUES = st.one_of(st.floats(allow_nan=False), st.integers(), st.text(), st.booleans())


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_every_set_of_values_has_one_id_whatever_its_order(values):
    assert run_id(values) == run_id(dict(reversed(values.items())))
