"""What servers printed of their GPU memory, as a small table: one row per set-up and item, with the runs behind it."""

from pathlib import Path
from typing import Any

from nvdash.store.connection import reading, store_path
from nvdash.store.keepsake import kept

ITEMS = {
    "weights": "weights_gib",
    "activation_peak": "peak_activation_gib",
    "non_torch": "non_torch_gib",
    "cuda_graphs": "cuda_graph_estimated_gib",
    "kv_cache": "available_kv_gib",
}
"""Items of the memory budget, and the value of a run that is that item: graphs as the engine sets them aside."""
SETUP = ("framework", "line", "model_base", "gpu", "tp")
"""What has to be known and equal; `line` is the release without its last number."""
_ROWS = """
WITH printed AS (
    SELECT *, regexp_extract(version, '^v?(\\d+\\.\\d+)\\.', 1) AS line FROM runs
    WHERE withdrawn_at IS NULL AND source = 'run' AND (pp = 1 OR pp IS NULL AND gpu_count = tp) AND coalesce(dp, 1) = 1
), items AS (
    UNPIVOT (SELECT run_id, weights_gib, available_kv_gib FROM printed) ON weights_gib, available_kv_gib
        INTO NAME name VALUE gib
    UNION ALL
    SELECT run_id, name, number FROM extras
    WHERE name IN ('peak_activation_gib', 'non_torch_gib', 'cuda_graph_estimated_gib')
)
SELECT framework, line, model_base, gpu, tp, weight_format, spec_method, cuda_graphs, max_num_batched_tokens,
    max_model_len, coalesce(gpu_memory_utilization, mem_fraction_static) AS fraction, name,
    min(gib) AS low_gib, max(gib) AS high_gib, count(*) AS num_runs, min(run_id) AS run_id
FROM printed JOIN items USING (run_id)
WHERE line <> '' AND framework IS NOT NULL AND model_base IS NOT NULL AND gpu IS NOT NULL AND tp IS NOT NULL
GROUP BY ALL ORDER BY ALL
"""


def measured(setup: dict[str, Any], path: Path | None = None) -> list[dict[str, Any]]:
    """The rows of exactly this set-up (see `SETUP`); a value that a run does not state is left out of its row."""
    rows = kept(path or store_path(), "measured", _all)
    return [row for row in rows if all(row[name] == setup[name] for name in SETUP)]


def _all(place: Path) -> list[dict[str, Any]]:
    from nvdash.store.runs import as_dicts

    names = {value: item for item, value in ITEMS.items()}
    with reading(place) as connection:
        rows = as_dicts(connection, _ROWS)
    return [{"item": names[row.pop("name")], **row} for row in rows]
