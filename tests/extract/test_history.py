"""What neighbouring releases say of one another."""

from nvdash.extract.findings import Fact
from nvdash.extract.history import becomes, relate


def fact(name, value):
    return Fact(name, value, "a.py", 1)


SERIES = {
    "1.0": [],
    "1.0.post1": [],
    "1.1": [fact("new", "<first> (absent in <before>)"), fact("log", "line (<first> to <last> only)")],
    "1.2": [fact("new", "<first> (absent in <before>)"), fact("log", "line (<first> to <last> only)")],
    "1.2.post1": [fact("new", "<first> (absent in <before>)")],
}


def values(related, name):
    return {release: f.value for release, facts in related.items() for f in facts if f.fact == name}


def test_the_first_release_and_the_one_before_are_filled_in():
    assert values(relate(SERIES), "new") == dict.fromkeys(("1.1", "1.2", "1.2.post1"), "1.1 (absent in 1.0.post1)")


def test_post_releases_may_be_named_by_their_base():
    assert values(relate(SERIES, merge_posts=True), "new")["1.2"] == "1.1 (absent in 1.0)"


def test_the_last_release_of_a_run_is_filled_in():
    assert values(relate(SERIES), "log") == dict.fromkeys(("1.1", "1.2"), "line (1.1 to 1.2 only)")


def test_nothing_is_claimed_before_the_first_release_that_was_read():
    related = relate({"2.0": [fact("new", "<first> (absent in <before>)")]})
    assert values(related, "new") == {"2.0": "2.0 (absent in releases before 2.0 not read)"}


def test_a_value_tells_what_it_becomes_in_the_next_release_that_is_no_post_release():
    series = {"1.0": [fact("default", "a")], "1.0.post1": [fact("default", "b")], "1.1": [fact("default", "b")]}
    related = becomes(series, "default", "<value> from <release>")
    assert values(related, "default") == {"1.0": "a (b from 1.1)", "1.0.post1": "b", "1.1": "b"}
