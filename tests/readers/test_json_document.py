"""The one pass over JSON: what it cuts never matters to what is left, and what it keeps is what was there."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nvdash.readers.json_document import LONG_ARRAY, MAX_DEPTH, PER_REQUEST, documents
from nvdash.readers.source import FileRefused, open_source

KEYS = st.text(max_size=6).filter(lambda key: key.encode() not in PER_REQUEST)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=30,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=6)


def read(path, content: bytes) -> list:
    path.write_bytes(content)
    with open_source(path) as source:
        return list(documents(source))


@given(value=OBJECTS, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_document_without_long_arrays_is_read_as_json_reads_it(tmp_path_factory, value, indent, ascii_only):
    path = tmp_path_factory.getbasetemp() / "any.json"
    assert read(path, json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()) == [value]


@given(values=st.lists(OBJECTS, min_size=2, max_size=5))
@settings(max_examples=50, deadline=None)
def test_json_lines_are_read_one_by_one(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    assert read(path, "\n".join(map(json.dumps, values)).encode()) == values


@given(inner=VALUES, key=st.sampled_from(sorted(PER_REQUEST)))
@settings(max_examples=100, deadline=None)
def test_an_array_per_request_is_cut_whatever_it_holds(tmp_path_factory, inner, key):
    path = tmp_path_factory.getbasetemp() / "cut.json"
    assert read(path, json.dumps({"a": 1, key.decode(): [inner, [inner]], "z": 2}).encode()) == [
        {"a": 1, key.decode(): [], "z": 2}
    ]


def test_an_object_under_such_a_key_stays(tmp_path):
    assert read(tmp_path / "x", b'{"successful": {"mean": 1.5}}') == [{"successful": {"mean": 1.5}}]


def test_long_arrays_of_numbers_are_cut_and_long_arrays_of_objects_stay(tmp_path):
    numbers, objects = [1.5] * LONG_ARRAY, [{"n": n} for n in range(LONG_ARRAY // 4)]
    value = {"numbers": numbers, "nested": [numbers[:9]] * (LONG_ARRAY // 9), "objects": objects}
    assert read(tmp_path / "x", json.dumps(value).encode()) == [{"numbers": [], "nested": [], "objects": objects}]


def test_infinity_is_a_number_and_nan_is_none(tmp_path):
    assert read(tmp_path / "x", b'{"rate": Infinity}') == [{"rate": float("inf")}]
    with pytest.raises(FileRefused, match="NaN is not a measurement"):
        read(tmp_path / "x", b'{"rate": NaN}')


def test_a_byte_order_mark_is_no_error(tmp_path):
    assert read(tmp_path / "x", b'\xef\xbb\xbf{"a": 1}') == [{"a": 1}]


@pytest.mark.parametrize("content", [b'{"a": [1, 2}', b'{"a": 1]', b'{"a": "x', b"{", b'{"a": 1} x', b"{]", b'{"a" 1}'])
def test_what_is_no_json_is_refused(tmp_path, content):
    with pytest.raises(FileRefused):
        read(tmp_path / "x", content)


def test_nesting_ends_at_the_limit(tmp_path):
    deep = b'{"x": ' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH
    assert read(tmp_path / "x", deep)
    with pytest.raises(FileRefused, match="deeper nesting"):
        read(tmp_path / "x", b'{"x": ' + deep + b"}")


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes"
    try:
        read(path, b"{" + content)
    except FileRefused as refused:
        assert refused.expected
