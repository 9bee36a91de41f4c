"""Revised, withdrawn, reinstated, purged: each leaves a trace."""

import pytest

from nvdash.errors import UnknownError, UsageError
from nvdash.store import adding, lifecycle, runs, smoke, upkeep
from nvdash.store.values import typed


@pytest.fixture
def run(store, new_run):
    run = new_run(weight_format="bf16")
    adding.add([run])
    return run.run_id


def test_a_typed_field_is_a_revision_that_keeps_what_it_replaced(run):
    changed = lifecycle.revise([run], {"weight_format": "nvfp4", "tp": 2, "remark": "hot"}, "typed")
    assert changed[run] == {"weight_format": ("bf16", "nvfp4"), "tp": (None, 2), "remark": (None, "hot")}
    stored = runs.get(run)
    assert (stored["weight_format"], stored["tp"], stored["extras"]["remark"]) == ("nvfp4", 2, "hot")
    assert stored["provenance"]["tp"] == "typed"
    assert [(r["number"], r["field"], r.get("before"), r["value"]) for r in stored["revisions"]] == [
        (1, "weight_format", '"bf16"', '"nvfp4"'),
        (1, "tp", None, "2"),
        (1, "remark", None, '"hot"'),
    ]


def test_saying_the_same_again_is_no_revision(run):
    assert lifecycle.revise([run], {"weight_format": "bf16", "gpu_count": None}, "typed") == {run: {}}
    assert runs.get(run)["revisions"] == []


def test_a_measured_value_is_not_typed_over(run):
    with pytest.raises(UsageError, match=r"measured value 100\.0"):
        lifecycle.revise([run], {"output_tok_s": 200.0}, "typed")
    assert runs.get(run)["output_tok_s"] == 100.0


def test_later_files_fill_only_what_was_unknown(run):
    changed = lifecycle.complete({run: {"weight_format": "fp8", "kv_tokens": 1000}}, "server.log")
    assert changed == {run: {"kv_tokens": (None, 1000)}}
    assert runs.get(run)["weight_format"] == "bf16"


def test_withdrawing_hides_and_reinstating_shows(run):
    lifecycle.withdraw(run[:8], "wrong GPU")
    assert (runs.count(), runs.count(withdrawn=True)) == (0, 1)
    with pytest.raises(UsageError, match="withdrawn already"):
        lifecycle.withdraw(run, "again")
    lifecycle.reinstate(run, "it was right")
    assert runs.count() == 1
    with pytest.raises(UsageError):
        lifecycle.reinstate(run, "again")


def test_a_purge_leaves_only_its_audit_row(run):
    lifecycle.revise([run], {"tp": 2}, "typed")
    lifecycle.purge(run, "held a customer name")
    rows = upkeep.status()["rows"]
    assert {name: count for name, count in rows.items() if count} == {"audit": 1}
    with pytest.raises(UnknownError):
        runs.get(run)


def test_a_purge_leaves_no_byte_of_it_in_the_file(store, new_run):
    secret = "customer-4711-secret-model"
    gone, kept = new_run(model=secret), new_run(output_tok_s=7.0)
    adding.add([gone, kept])
    assert secret.encode() in store.read_bytes()
    lifecycle.purge(gone.run_id, "held a customer name")
    assert secret.encode() not in store.read_bytes()
    assert [run["run_id"] for run in runs.find()] == [kept.run_id]
    assert adding.add([kept]).duplicates == (kept.run_id,)
    assert not list(store.parent.glob("*.rewritten"))


def test_a_smoke_report_is_purged_too(store):
    (smoke_id,), _ = smoke.add_smoke([({"verdict": "pass"}, {"engine": "vllm"})])
    assert lifecycle.purge(smoke_id[:8], "wrong machine") == smoke_id
    assert smoke.smoke_reports() == []


def test_a_purge_without_a_reason_is_refused(run):
    with pytest.raises(UsageError, match="why"):
        lifecycle.purge(run, "  ")
    assert runs.count() == 1


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("tp", "4", 4),
        ("gpu_memory_utilization", "0.92", 0.92),
        ("enable_prefix_caching", "off", False),
        ("weight_format", " nvfp4 ", "nvfp4"),
        ("request_rate_rps", "inf", float("inf")),
        ("tp", "unknown", None),
        ("gpu", "I do not know", None),
    ],
)
def test_typed_text_becomes_a_value_of_the_field(name, text, value):
    assert typed(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("tensor_paralel", "4", "name of a field"),
        ("tp", "four", "a number"),
        ("tp", "-4", "not negative"),
        ("gpu_memory_utilization", "92", "between 0 and 1"),
        ("enable_prefix_caching", "maybe", "true or false"),
        ("output_tok_s", "nan", "a number"),
    ],
)
def test_typed_nonsense_is_refused_with_the_field(name, text, says):
    with pytest.raises(UsageError, match=says) as refusal:
        typed(name, text)
    assert name in str(refusal.value)
