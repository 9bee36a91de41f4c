"""Timeline, grid, differences, nearest changes and proposals over a small matrix."""

from dataclasses import replace

from nvdash.readers.matrix import Matrix, Release
from nvdash.readers.yaml_rows import parse_yaml
from nvdash.support.diff import differences
from nvdash.support.names import archs, cache_dtypes
from nvdash.support.nearest import nearest
from nvdash.support.observations import Observation
from nvdash.support.pivot import cube, pivot
from nvdash.support.propose import proposal
from nvdash.support.timeline import timeline
from nvdash.support.whole import verdict_of_all
from nvdash.targets import HeadLayout
from tests.support.conftest import row


def test_a_timeline_has_one_stretch_per_answer_and_marks_uncertain_starts(small_matrix, nvfp4_on_sm120):
    stretches = timeline(Matrix(), [nvfp4_on_sm120])
    assert [(item.since, item.releases[-1], item.verdict, item.layer, item.backend) for item in stretches] == [
        ("≤0.27.0", "0.27.0", "refused", "selector", None),
        ("0.31.0", "0.31.0", "unknown", None, None),
        ("≤0.32.0", "0.33.0", "expected", None, "FLASHINFER"),
    ]
    assert stretches[1].reason == "not read"
    assert stretches[-1].end_uncertain
    assert stretches[-1].label == "≤0.32.0 to 0.33.0"


def test_a_timeline_starts_anew_where_the_backend_changes(make_matrix, nvfp4_on_sm120):
    rows = [
        {"id": "p1", "kind": "priority", "when": {}, "since": "0.32.0", "until": "0.33.0", "order": ["A", "B"]},
        {"id": "p2", "kind": "priority", "when": {}, "since": "0.33.0", "order": ["B", "A"]},
        row("ab", {"backend": ["A", "B"]}),
    ]
    stretches = timeline(make_matrix(rows), [nvfp4_on_sm120])
    assert [(item.since, item.backend) for item in stretches] == [("≤0.32.0", "A"), ("0.33.0", "B")]


def test_one_stage_can_be_followed_alone(make_matrix, nvfp4_on_sm120):
    rows = [
        row("p", {"backend": "A"}, stage=["prefill"]),
        row("d", {"backend": "A"}, "trap", layer="forward", stage=["decode"]),
    ]
    item = replace(nvfp4_on_sm120, backend="A")
    assert [part.verdict for part in timeline(make_matrix(rows), [item], stage="prefill")] == ["expected"]
    assert [part.verdict for part in timeline(make_matrix(rows), [item])] == ["trap"]


def test_a_model_with_several_head_sizes_is_judged_by_its_worst_layers(small_matrix, nvfp4_on_sm120):
    narrow = replace(nvfp4_on_sm120, heads=HeadLayout.parse("gqa:32/8x64"))
    found = verdict_of_all(Matrix(), [nvfp4_on_sm120, narrow])
    assert (found.verdict, found.layer) == ("refused", "selector")
    assert found.stages["prefill"].note == "decided by the gqa:32/8x64 layers"
    assert found.stages["weights"].note is None
    assert [item.verdict for item in timeline(Matrix(), [nvfp4_on_sm120, narrow])] == ["refused", "unknown", "refused"]


def test_a_grid_gives_every_cell_and_since_when(small_matrix, nvfp4_on_sm120):
    grid = pivot(
        Matrix(),
        nvfp4_on_sm120,
        ("arch", ["sm90", "sm75"]),
        ("kv_cache_dtype", ["auto", "nvfp4"]),
        with_since=True,
    )
    assert [[(cell.verdict, cell.since) for cell in line] for line in grid] == [
        [("expected", "≤0.27.0"), ("expected", "≤0.32.0")],
        [("unknown", "≤0.27.0"), ("unknown", "≤0.27.0")],
    ]
    assert grid[0][1].backend == "FLASHINFER"


def test_a_grid_and_a_single_question_agree(small_matrix, nvfp4_on_sm120):
    from nvdash.support.evaluate import verdict

    matrix = Matrix()
    axes = {
        "arch": ["sm75", "sm90", "sm120"],
        "kv_cache_dtype": ["auto", "fp8", "nvfp4"],
        "backend": ["auto", "FLASHINFER"],
    }
    shapes = ["gqa:32/8x64", "gqa:32/8x128"]
    cells = cube(matrix, nvfp4_on_sm120, {**axes, "heads": shapes, "release": ["0.27.0", "0.31.0", "0.33.0"]})
    assert len(cells) == 3 * 3 * 2 * 2 * 3
    for (arch, dtype, backend, heads, release), cell in cells.items():
        item = replace(
            nvfp4_on_sm120,
            arch=arch,
            kv_cache_dtype=dtype,
            backend=None if backend == "auto" else backend,
            heads=HeadLayout.parse(heads),
            release=release,
        )
        single = verdict(matrix, item)
        assert (cell.verdict, cell.layer) == (single.verdict, single.layer), (arch, dtype, backend, heads, release)


def test_a_weights_axis_forgets_the_method_of_the_question(small_matrix, nvfp4_on_sm120):
    item = replace(nvfp4_on_sm120, weights="nvfp4", method="modelopt_fp4")
    grid = pivot(Matrix(), item, ("weights", ["bf16", "nvfp4"]), ("arch", ["sm120"]), stage="weights")
    assert [line[0].verdict for line in grid] == ["expected", "conditional"]


def test_differences_are_gained_lost_new_traps_changed_or_not(make_matrix, nvfp4_on_sm120):
    old, new = {"since": "0.32.0", "until": "0.33.0"}, {"since": "0.33.0"}
    rows = [
        row("g0", {"kv_cache_dtype": "nvfp4", "backend": "A"}, "refused") | old,
        row("g1", {"kv_cache_dtype": "nvfp4", "backend": "A"}) | new,
        row("l0", {"kv_cache_dtype": "fp8", "backend": "A"}) | old,
        row("l1", {"kv_cache_dtype": "fp8", "backend": "A"}, "refused") | new,
        row("t0", {"kv_cache_dtype": "int8", "backend": "A"}) | old,
        row("t1", {"kv_cache_dtype": "int8", "backend": "A"}, "trap", layer="forward") | new,
        row("c0", {"kv_cache_dtype": "x", "backend": "A"}, "refused", layer="config") | old,
        row("c1", {"kv_cache_dtype": "x", "backend": "A"}, "refused") | new,
        row("u", {"kv_cache_dtype": "y", "backend": "A"}),
    ]
    items = [[replace(nvfp4_on_sm120, backend="A", kv_cache_dtype=word)] for word in ("nvfp4", "fp8", "int8", "x", "y")]
    found = list(differences(make_matrix(rows), items, "0.32.0", "0.33.0"))
    assert [item.change for item in found] == ["gained", "lost", "new_trap", "changed", "unchanged"]
    assert found[0].as_dict()["from"] == "refused" and found[0].as_dict()["to"] == "expected"


def test_the_nearest_change_keeps_at_least_as_many_bits_and_moves_one_axis(small_matrix, nvfp4_on_sm120):
    changes = nearest(Matrix(), [replace(nvfp4_on_sm120, release="0.27.0")])
    assert [(item.axis, item.then) for item in changes] == [("kv_cache_dtype", "fp8"), ("release", "0.32.0")]


def test_every_shape_of_a_model_must_run_after_a_nearest_change(small_matrix, nvfp4_on_sm120):
    shapes = [nvfp4_on_sm120, replace(nvfp4_on_sm120, heads=HeadLayout.parse("gqa:32/8x64"))]
    assert [(item.axis, item.then) for item in nearest(Matrix(), shapes)] == [("kv_cache_dtype", "fp8")]


def test_names_come_from_the_statements_of_the_release(small_matrix):
    matrix = Matrix()
    assert cache_dtypes(matrix, "vllm", "0.27.0") == ["auto", "fp8", "nvfp4"]
    assert archs(matrix, "vllm", "0.33.0") == ["sm90", "sm120"]
    assert cache_dtypes(matrix, "vllm", "0.31.0") == []


FELL_BACK = Observation(
    run="7c1e09ab",
    framework="vllm",
    release="0.32.0",
    arch="sm120",
    verdict="trap",
    stages=("kv_write", "decode"),
    level="traced",
    layer="silent",
    reason="stored as FP8",
    backend="FLASHINFER",
    kv_cache_dtype="nvfp4",
    kind="gqa",
    head_size=128,
    value_head_size=128,
)


def test_a_proposal_is_a_statement_that_reads_back(make_matrix):
    releases = (Release("0.32.0", source="sdist"), Release("0.33.0", source="sdist"))
    patch = proposal(make_matrix([], releases), [FELL_BACK])
    (statement,) = parse_yaml(patch.encode(), "patch.yaml")
    assert (statement["since"], statement["until"], statement["verdict"], statement["layer"]) == (
        "0.32.0",
        "0.33.0",
        "trap",
        "silent",
    )
    assert statement["when"]["head_size"] == 128 and statement["stage"] == ["kv_write", "decode"]
    from nvdash.readers.statement_rows import problems_of

    assert list(problems_of(statement, "patch.yaml")) == []
