"""vLLM's own backend table, read from its Markdown."""

import pytest

from nvdash.errors import UsageError
from nvdash.support.upstream_table import cells, covers, table_rows

PAGE = """
# Attention backends
| Priority | Backend |
| -------- | ------- |
| 1 | `A` |

| Backend | Version | KV Dtypes | Head Sizes | Compute Cap. |
| ------- | ------- | --------- | ---------- | ------------ |
| `A` | Native† | `auto`, `fp8` | 64, 128 | 8.x-9.x |
| `A` | TRTLLM† | `auto`, `nvfp4` | 64, 128, 256 | 10.x |
| `B_MLA` | | `auto` | Any | ≥9.0 |
| `ROCM_X` | | `auto` | Any | N/A |
| `C_DSV4` | | `auto` | 512 | Any |
"""


@pytest.mark.parametrize(
    ("limit", "yes", "no"),
    [
        ("8.x-9.x", ["8.0", "8.9", "9.0"], ["7.5", "10.0"]),
        ("10.x", ["10.0", "10.3"], ["9.0", "11.0", "12.0"]),
        ("≥8.0", ["8.0", "12.1"], ["7.5"]),
        ("10.x, 12.x", ["10.3", "12.0"], ["11.0"]),
        ("Any", ["7.5", "12.1"], []),
        ("N/A", [], ["9.0"]),
    ],
)
def test_a_capability_limit_is_read_as_people_read_it(limit, yes, no):
    assert all(covers(limit, item) for item in yes)
    assert not any(covers(limit, item) for item in no)


def test_only_tables_with_the_needed_columns_count():
    assert [row["Backend"] for row in table_rows(PAGE)] == ["A", "A", "B_MLA", "ROCM_X", "C_DSV4"]


def test_every_dtype_of_the_page_is_asked_where_a_row_covers_the_gpu():
    found = {
        (c["backend"], c["compute_capability"], c["kv_cache_dtype"], c["head_size"]): c["valid"] for c in cells(PAGE)
    }
    assert found["A", "9.0", "fp8", "128"] == "1"
    assert found["A", "9.0", "nvfp4", "128"] == "0"
    assert found["A", "10.0", "nvfp4", "128"] == "1"
    assert found["A", "9.0", "auto", "256"] == "0"
    assert found["A", "10.0", "auto", "256"] == "1"
    assert found["B_MLA", "12.0", "auto", "576"] == "1"
    assert ("A", "12.0", "auto", "128") not in found
    assert {key[0] for key in found} == {"A", "B_MLA"}


def test_a_page_without_the_table_is_refused():
    with pytest.raises(UsageError, match="a table with the columns"):
        cells("# Attention backends\nmarkers only\n")
