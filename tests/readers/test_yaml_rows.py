"""Strict YAML: what it refuses, and that it names every problem of a file with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.errors import NvdashError, Problems
from nvdash.readers.yaml_rows import MAX_DEPTH, parse_yaml, read_rows


def problems(text: str) -> list[str]:
    with pytest.raises(Problems) as caught:
        parse_yaml(text.encode(), "f.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_plain_values_keep_their_types_and_lines():
    rows = parse_yaml(b'- a: 1\n  b: "0.10"\n  c: [true, null, -2.5]\n- a: x\n', "f.yaml")
    assert rows == [{"a": 1, "b": "0.10", "c": [True, None, -2.5]}, {"a": "x"}]
    assert (rows[0].line, rows[0].lines["b"], rows[1].line) == (1, 2, 4)


def test_an_unquoted_version_keeps_the_text_that_was_written():
    assert parse_yaml(b"since: 0.10\n", "f.yaml").texts == {"since": "0.10"}


def test_an_empty_file_has_no_value():
    assert parse_yaml(b"", "f.yaml") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2\n", "f.yaml:2 a: expected each key once, a second one\n  hint: the first is on line 1"),
        ("a: &x 1\nb: *x\n", "f.yaml:1 a: expected a value written out, an anchor or alias\n  hint: repeat the value"),
        ("a: !!python/object:os.system {}\n", "f.yaml:1 a: expected a plain value, the tag tag:yaml.org,2002:python/"),
        ("a: !env HOME\n", "f.yaml:1 a: expected a plain value, the tag !env"),
        (
            "d: 2026-11-29\n",
            "f.yaml:1 d: expected quoted text or a plain value, got 2026-11-29, which YAML reads as a d",
        ),
        ("d: no\n", "f.yaml:1 d: expected quoted text or a plain value, got no, which YAML reads as a boolean"),
        ("no: 1\n", 'f.yaml:1: expected a key that is text, no\n  hint: write "no":'),
        ("a: 0x10\n", "f.yaml:1 a: expected quoted text or a plain value, got 0x10"),
        ("a: 012\n", "f.yaml:1 a: expected quoted text or a plain value, got 012"),
        ("a: 1:30\n", "f.yaml:1 a: expected quoted text or a plain value, got 1:30"),
        ("a: .nan\n", "f.yaml:1 a: expected quoted text or a plain value, got .nan"),
        ("a: .inf\n", "f.yaml:1 a: expected quoted text or a plain value, got .inf"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: expected one document, a second one"),
        ("a: [1\n", "f.yaml:2: expected valid YAML"),
        ("? [a]\n: 1\n", "f.yaml:1: expected valid YAML, a key that is not text"),
        ("<<: {a: 1}\n", "f.yaml:1: expected a key that is text, <<"),
    ],
)
def test_what_yaml_would_quietly_read_as_something_else_is_refused(text, expected):
    assert problems(text)[0].startswith(expected)


def test_all_problems_of_a_file_come_together():
    found = problems("- {a: 1, a: 2}\n- b: 2026-11-29\n- c: &x y\n")
    assert [item.split(" expected")[0] for item in found] == ["f.yaml:1 [0].a:", "f.yaml:2 [1].b:", "f.yaml:3 [2].c:"]


def test_nesting_is_bounded():
    assert "nested deeper" in problems("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))[0]
    assert "valid YAML" in problems("[" * 100_000)[0]


def test_text_that_is_not_utf8_is_refused_with_the_byte():
    with pytest.raises(NvdashError, match="byte 3 is not"):
        parse_yaml(b"a: \xff", "f.yaml")


def test_rows_must_be_a_list_of_mappings(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text("a: 1\n")
    with pytest.raises(NvdashError, match="expected a list of rows, got a mapping"):
        read_rows(path)
    path.write_text("- 1\n- x\n")
    with pytest.raises(Problems) as caught:
        read_rows(path)
    assert len(caught.value.problems) == 2


def test_a_missing_and_an_oversized_file_are_named(tmp_path):
    with pytest.raises(NvdashError, match="a readable YAML file"):
        read_rows(tmp_path / "absent.yaml")
    path = tmp_path / "big.yaml"
    path.write_bytes(b"# " + b"x" * (33 * 2**20))
    with pytest.raises(NvdashError, match="at most 33,554,432 bytes"):
        read_rows(path)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_named_problem(content):
    try:
        parse_yaml(content, "f.yaml")
    except NvdashError as error:
        assert str(error).startswith("f.yaml")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abcxyz 0129.:-", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_json_is_read_back_as_it_was_written(value):
    import json

    assert parse_yaml(json.dumps(value).encode(), "f.yaml") == value
