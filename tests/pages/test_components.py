"""Small parts of pages, without a page."""

import pytest

from nvdash.ui import components


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-", "\\-"),
        ("- a list", "\\- a list"),
        ("1. a list", "1\\. a list"),
        ("=", "\\="),
        ("-5 GiB", "-5 GiB"),
        ("0.92", "0.92"),
        ("<b>*x*", "\\<b\\>\\*x\\*"),
        (None, ""),
    ],
)
def test_text_from_a_file_never_becomes_markdown(text, shown):
    assert components.plain(text) == shown


def test_a_column_that_says_the_same_in_every_row_is_said_once():
    rows = [{"Part": "decode", "GPU": "B200", "Value": "1"}, {"Part": "decode", "GPU": "B200", "Value": "2"}]
    shown, same = components.without_repeats(rows, keep=("Part", "Value"))
    assert shown == [{"Part": "decode", "Value": "1"}, {"Part": "decode", "Value": "2"}]
    assert same == {"GPU": "B200"}
    assert components.without_repeats([], keep=()) == ([], {})
