"""Three-valued matching of statements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.extract import context, sglang_config
from nvdash.readers.statements import EVALUATED_ARCHS, condition_of, statement_of
from nvdash.support.matching import avoid, match, matches, outcome
from nvdash.support.values import RANK
from tests.support.conftest import row

AXIS_VALUES = st.sampled_from([16, 64, 80, 128, 256, 512])


@pytest.mark.parametrize(
    ("limit", "admitted", "refused"),
    [
        (128, [128], [64]),
        ([64, 128], [64, 128], [256]),
        ({"not": [64]}, [128, 16], [64]),
        ({"min": 16, "max": 256}, [16, 128, 256], [8, 512]),
        ({"min": 16, "multiple_of": 16}, [16, 48], [8, 40]),
        ({"multiple_of": 16, "not": 64}, [16, 128], [64, 100]),
    ],
)
def test_a_condition_admits_what_its_words_say(limit, admitted, refused):
    condition = condition_of("head_size", limit)
    assert all(condition.admits(value) for value in admitted)
    assert not any(condition.admits(value) for value in refused)


@pytest.mark.parametrize(
    ("limit", "words", "opposite"),
    [
        ([64, 128], "head_size 128 or 64", "head_size not 128 or 64"),
        ({"not": [64]}, "head_size not 64", "head_size 64"),
        ({"min": 16, "max": 256}, "head_size at least 16, at most 256", "not (head_size at least 16, at most 256)"),
    ],
)
def test_a_condition_and_its_opposite_are_said_in_words(limit, words, opposite):
    condition = condition_of("head_size", limit)
    assert str(condition) == words
    assert avoid((condition,)) == opposite


def test_the_opposite_of_sinks_is_no_sinks():
    assert avoid((condition_of("sinks", True),)) == "sinks false"


def test_a_statement_matches_maybe_when_the_question_leaves_its_axis_open():
    statement = statement_of({"where": "t:1", **row("a", {"arch": "sm120", "head_size": 128})}, "vllm")
    fit = match(statement, {"arch": "sm120"})
    assert fit is not None and [str(item) for item in fit.open] == ["head_size 128"]
    assert match(statement, {"arch": "sm90"}) is None
    assert match(statement, {"arch": "sm120", "head_size": 128}).open == ()


def outcome_of(rows, values, stage="decode"):
    statements = [statement_of({"where": "t:1", **item}, "vllm") for item in rows]
    return outcome(matches(statements, values), stage)


def test_no_statement_is_unknown():
    assert outcome_of([], {}).verdict == "unknown"


def test_the_worst_of_all_matching_statements_wins():
    rows = [row("yes", {}), row("no", {"arch": "sm75"}, "refused"), row("trap", {"arch": "sm75"}, "trap")]
    assert outcome_of(rows, {"arch": "sm75"}).verdict == "refused"
    assert outcome_of(rows, {"arch": "sm90"}).verdict == "expected"


def test_a_refusal_that_may_apply_makes_it_conditional_and_says_what_to_avoid():
    rows = [row("yes", {}), row("no", {"sinks": True}, "refused")]
    found = outcome_of(rows, {})
    assert (found.verdict, found.conditions()) == ("conditional", ("sinks false",))


def test_a_positive_that_only_may_apply_makes_it_conditional_and_says_what_is_needed():
    found = outcome_of([row("yes", {"head_size": [64, 128]})], {})
    assert (found.verdict, found.conditions()) == ("conditional", ("head_size 128 or 64",))


def test_a_refusal_that_may_apply_changes_nothing_where_nothing_is_known():
    assert outcome_of([row("no", {"sinks": True}, "refused")], {}).verdict == "unknown"


def test_a_certain_refusal_beats_an_uncertain_positive():
    rows = [row("no", {"arch": "sm75"}, "refused"), row("yes", {"head_size": 128})]
    assert outcome_of(rows, {"arch": "sm75"}).verdict == "refused"


def test_statements_of_another_stage_do_not_count():
    assert outcome_of([row("no", {}, "refused", stage=["prefill"])], {}, "decode").verdict == "unknown"


@given(sizes=st.sets(AXIS_VALUES, min_size=1), size=AXIS_VALUES)
def test_knowing_an_axis_never_contradicts_what_was_said_while_it_was_open(sizes, size):
    """`conditional` may become anything better or a refusal; a certain verdict stays."""
    rows = [row("yes", {}), row("no", {"head_size": sorted(sizes)}, "refused")]
    assert outcome_of(rows, {}).verdict == "conditional"
    assert outcome_of(rows, {"head_size": size}).verdict == ("refused" if size in sizes else "expected")


@given(st.lists(st.sampled_from(["refused", "trap", "unknown", "conditional", "expected"]), min_size=1))
def test_the_order_of_statements_does_not_matter(verdicts):
    rows = [row(f"s{number}", {}, verdict) for number, verdict in enumerate(verdicts)]
    worst = min(verdicts, key=RANK.__getitem__)
    assert outcome_of(rows, {}).verdict == outcome_of(rows[::-1], {}).verdict == worst


def test_a_conditional_statement_lists_what_it_needs_or_else_its_reason():
    needs = row("a", {}, "conditional", needs=["AITER switched on"], reason="depends on the environment")
    assert outcome_of([needs], {}).conditions() == ("AITER switched on",)
    assert outcome_of([row("a", {}, "conditional", reason="16 tokens per block")], {}).conditions() == (
        "16 tokens per block",
    )


def test_a_generated_statement_without_a_gpu_holds_for_the_gpus_that_were_evaluated():
    wide = {"id": "wide", "when": {"backend": "A"}, "since": "1", "where": "a.yaml:1", "generated": True}
    read = statement_of({**wide, "verdict": "expected"}, "vllm")
    assert match(read, {"backend": "A", "arch": "sm120"}) and not match(read, {"backend": "A", "arch": "gfx942"})
    config = statement_of({**wide, "verdict": "refused", "layer": "config"}, "vllm")
    assert match(config, {"backend": "A", "arch": "gfx942"})
    by_hand = statement_of({**wide, "verdict": "expected", "generated": False}, "vllm")
    assert match(by_hand, {"backend": "A", "arch": "gfx942"})


def test_the_evaluated_gpus_are_those_of_the_extractors():
    assert EVALUATED_ARCHS == tuple(f"sm{number}" for number in context.ARCHITECTURES) == sglang_config.ARCHITECTURES
