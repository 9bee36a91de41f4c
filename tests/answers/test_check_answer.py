"""`answers.check`: the JSON of DESIGN section 9 and its exit codes."""

from pathlib import Path

import pytest

from nvdash.answers.check import check, check_fleet_file, exit_code
from nvdash.answers.matrix import diff, diff_fleet, facts, pivot
from nvdash.errors import NvdashError, UnknownError, UsageError
from nvdash.readers import digest
from tests.support.conftest import small_matrix as small_matrix  # the fixture

LLAMA = {"gpu": "RTX 5090", "model": "meta-llama/Llama-3.1-8B-Instruct", "weights": "bf16", "kv_cache_dtype": "nvfp4"}


def test_an_expected_combination_answers_every_key(small_matrix):
    answer = check({**LLAMA, "release": "0.33.0"})
    assert (answer["schema"], answer["verdict"], exit_code(answer)) == ("nvdash.check/1", "expected", 0)
    assert answer["resolved"]["backend"] == "FLASHINFER"
    assert answer["resolved"]["kv_cache_dtype"] == "nvfp4"
    assert list(answer["stages"]) == ["weights", "kv_write", "prefill", "decode"]
    for stage in answer["stages"].values():
        assert {"verdict", "kernel", "compute", "path", "layer", "reason", "evidence"} <= stage.keys()
    assert answer["stages"]["prefill"]["kernel"] == "dequant"
    assert (answer["stages"]["prefill"]["evidence"]["file"], answer["stages"]["prefill"]["evidence"]["line"]) == (
        "flashinfer.py",
        653,
    )
    for key in ("assumes", "unmet_conditions", "nearest", "nearest_release", "conflicts", "reports"):
        assert key in answer
    assert answer["question"]["arch"] == "sm120" and answer["question"]["dcp"] == 1
    assert answer["matrix_digest"] == digest.matrix_digest()


def test_a_refused_combination_names_the_layer_the_line_and_what_would_run(small_matrix):
    answer = check({**LLAMA, "release": "0.27.0"})
    assert (answer["verdict"], answer["layer"], exit_code(answer)) == ("refused", "selector", 1)
    assert answer["stages"]["decode"]["evidence"]["line"] == 447
    assert {"axis": "release", "from": "0.27.0", "to": "0.32.0", "verdict": "expected"} in answer["nearest"]
    assert [row["backend"] for row in answer["skipped_backends"]] == ["FLASH_ATTN", "FLASHINFER"]
    assert check({**LLAMA, "release": "0.27.0"}, neighbours=False) == {**answer, "nearest": []}


@pytest.mark.parametrize(
    ("release", "nearest"),
    [("0.34.0", "0.33.0"), ("0.31.0", "0.27.0"), ("main", "0.33.0"), ("0.28.1.nv25.10", "0.27.0")],
)
def test_an_unread_release_is_unknown_with_the_nearest_read_one(small_matrix, release, nearest):
    answer = check({**LLAMA, "release": release})
    assert (answer["verdict"], exit_code(answer), answer["nearest_release"]) == ("unknown", 3, nearest)


def test_without_a_release_the_newest_read_one_is_used_and_named(small_matrix):
    assert check(LLAMA)["question"]["release"] == "0.33.0"


def test_an_open_head_layout_is_conditional_and_says_so(small_matrix):
    question = {"gpu": "sm120", "weights": "bf16", "kv_cache_dtype": "nvfp4"}
    answer = check(question)
    assert (answer["verdict"], answer["unmet_conditions"]) == ("conditional", ["head_size not 64"])
    assert answer["notes"] == ["no model and no head layout was named: head sizes are left open"]
    assert exit_code(answer) == 0
    assert exit_code(check({**question, "require": "expected"})) == 1


def test_a_sixteen_bit_cache_without_a_model_says_which_type_is_taken(small_matrix):
    note = "no 16-bit type of a model is named: bfloat16 is taken"
    assert note in check({"gpu": "sm120", "weights": "bf16", "kv_cache_dtype": "float16"})["notes"]
    assert note not in check({**LLAMA, "kv_cache_dtype": "float16"})["notes"]


def test_a_model_without_an_nvfp4_checkpoint_is_told_so(small_matrix):
    answer = check({**LLAMA, "model": "tiiuae/falcon-7b", "weights": "nvfp4", "kv_cache_dtype": "auto"})
    assert any("no nvfp4 checkpoint of" in note for note in answer["notes"])
    assert answer["resolved"]["kv_cache_dtype"] is None


def test_a_known_checkpoint_is_named_with_its_method_and_cache_scheme(small_matrix):
    answer = check({"gpu": "sm120", "model": "MiniMaxAI/MiniMax-M2.5", "weights": "nvfp4", "kv_cache_dtype": "auto"})
    assert answer["checkpoint"]["weights"] == "nvfp4"
    assert answer["checkpoint"]["kv_cache_scheme"] == "fp8"
    assert answer["resolved"]["checkpoint"] == answer["checkpoint"]["repository"]
    named = "the nvfp4 weights are those of nvidia/MiniMax-M2.5-NVFP4 (modelopt, W4A4)"
    assert answer["notes"] == [f"{named}; its kv_cache_scheme asks auto for fp8"]


def test_a_checkpoint_whose_config_was_not_read_leaves_auto_unknown_and_says_so(small_matrix):
    answer = check({**LLAMA, "weights": "nvfp4", "kv_cache_dtype": "auto"})
    assert answer["notes"][0].startswith("the nvfp4 weights are those of nvidia/Llama-3.1-8B-Instruct-NVFP4")
    assert answer["notes"][0].endswith("its kv_cache_scheme was not read")
    assert answer["resolved"]["kv_cache_dtype"] is None


def test_a_quantisation_flag_names_its_format_and_method(small_matrix):
    answer = check({**LLAMA, "weights": "modelopt_fp4"})
    assert (answer["resolved"]["weights"], answer["resolved"]["method"]) == ("nvfp4", "modelopt_fp4")
    assert answer["stages"]["weights"]["verdict"] == "expected"


def test_a_drafter_is_judged_beside_its_target(small_matrix):
    answer = check({**LLAMA, "draft_method": "eagle3", "draft_tokens": 3})
    stage = answer["stages"]["prefill"]
    assert (stage["target"]["verdict"], stage["drafter"]["verdict"]) == ("expected", "conditional")
    assert answer["verdict"] == "conditional"
    wanted = "the drafter's own attention shape allows it: name the drafter (--draft-model)"
    assert answer["unmet_conditions"] == [wanted]
    assert "drafter" not in check({**LLAMA, "draft_method": "ngram"})["stages"]["prefill"]
    shared = check({**LLAMA, "draft_method": "mtp"})
    assert shared["stages"]["prefill"]["drafter"]["verdict"] == "expected"


def test_a_named_drafter_is_judged_by_its_own_shape(small_matrix):
    named = {**LLAMA, "draft_model": "Qwen/Qwen3-0.6B", "draft_method": "eagle3"}
    answer = check(named)
    assert (answer["stages"]["prefill"]["drafter"]["verdict"], answer["unmet_conditions"]) == ("expected", [])
    assert answer["question"]["draft_model"] == "Qwen/Qwen3-0.6B"
    alone = check({**LLAMA, "draft_model": "Qwen/Qwen3-0.6B"})
    assert (alone["question"]["draft_method"], alone["verdict"]) == ("draft_model", "expected")
    with pytest.raises(UnknownError, match="no-such-drafter"):
        check({**LLAMA, "draft_model": "no-such-drafter"})


@pytest.mark.parametrize(
    ("change", "error", "expected"),
    [
        ({"gpu": "RTX 5091"}, UnknownError, "RTX 5090"),
        ({"gpu": None}, UsageError, "--gpu"),
        ({"model": "meta-llama/Llama-3.1-8B-Instuct"}, NvdashError, "Llama-3.1-8B-Instruct"),
        ({"framework": "vlm"}, UnknownError, "vllm"),
        ({"weights": "nvpf4"}, UnknownError, "nvfp4"),
        ({"dcp": 0}, UsageError, "--dcp"),
        ({"head_layout": "gqa:64"}, UsageError, "KIND:QUERY_HEADS"),
        ({"kv_cache": "nvfp4"}, UsageError, "kv_cache_dtype"),
        ({"kv_cache_dtype": "nvfp5"}, UnknownError, "nvfp4"),
        ({"draft_method": "mtp", "draft_kv_cache_dtype": "pf8"}, UnknownError, "fp8"),
        ({"tp": 3}, UsageError, "divides the 32 query heads"),
    ],
)
def test_a_wrong_word_names_the_nearest_right_one(small_matrix, change, error, expected):
    with pytest.raises(error) as caught:
        check({**LLAMA, **change})
    assert expected in str(caught.value)


def test_a_backend_that_nothing_names_is_unknown_with_the_nearest_name_and_no_kernel(small_matrix):
    answer = check({**LLAMA, "kv_cache_dtype": "auto", "backend": "FLASHINFR"})
    assert (answer["verdict"], exit_code(answer)) == ("unknown", 3)
    assert "did you mean FLASHINFER, FLASH_ATTN?" in answer["notes"][0]
    assert answer["stages"]["decode"]["kernel"] is None


def test_a_selector_is_asked_with_the_heads_of_one_rank(small_matrix):
    (small_matrix / "vllm" / "heads.yaml").write_text(
        "- id: few-heads\n  when: {backend: FLASHINFER, query_heads: {max: 16}}\n  since: '0.33.0'\n"
        "  verdict: refused\n  layer: selector\n  reason: too few heads\n"
        "  evidence: {release: '0.33.0', file: flashinfer.py, line: 9}\n"
    )
    assert check({**LLAMA, "tp": 1})["verdict"] == "expected"
    refused = check({**LLAMA, "tp": 2})
    assert refused["verdict"] == "refused"
    assert "too few heads" in [row["reason"] for row in refused["skipped_backends"]]


def test_a_fleet_answers_row_by_row_and_its_code_is_the_worst(small_matrix, tmp_path: Path):
    path = tmp_path / "fleet.yaml"
    path.write_text(
        '- {name: good, gpu: "RTX 5090", head_layout: "gqa:32/8x128", weights: bf16, kv_cache_dtype: nvfp4}\n'
        '- {name: old, release: "0.27.0", gpu: sm120, head_layout: "gqa:32/8x128", kv_cache_dtype: nvfp4}\n'
        '- {name: new, release: "0.99.0", gpu: sm120, head_layout: "gqa:32/8x128", weights: bf16}\n'
    )
    answer = check_fleet_file(path, {"framework": "vllm"})
    assert [(row["name"], row["verdict"]) for row in answer["rows"]] == [
        ("good", "expected"),
        ("old", "refused"),
        ("new", "unknown"),
    ]
    assert (answer["verdict"], exit_code(answer)) == ("refused", 1)


def test_a_fleet_row_that_cannot_be_asked_is_told_and_the_others_are_answered(small_matrix, tmp_path: Path):
    path = tmp_path / "fleet.yaml"
    path.write_text(
        '- {gpu: "no such card"}\n- {gpu: sm120, head_layout: "gqa:32/8x128", weights: bf16, kv_cache_dtype: nvfp4}\n'
    )
    answer = check_fleet_file(path, {})
    assert answer["rows"][0]["error"]["where"] == "GPU 'no such card'"
    assert answer["rows"][1]["verdict"] == "expected"
    assert exit_code(answer) == 3


def test_every_slip_of_a_fleet_file_is_told_with_its_line(small_matrix, tmp_path: Path):
    path = tmp_path / "fleet.yaml"
    path.write_text("- gpu: sm120\n  modle: x\n- gpu: sm120\n  release: 0.10\n")
    with pytest.raises(NvdashError) as caught:
        check_fleet_file(path, {})
    assert caught.value.exit_code == 2
    told = str(caught.value).splitlines()
    assert told[0] == f"{path}:2 modle: expected a flag of check, an unknown one"
    assert told[1] == "  hint: did you mean model, draft_model?"
    assert told[2] == f"{path}:4 release: expected a quoted version, got the number 0.1"
    assert told[3].startswith('  hint: write "0.10"')


def test_a_diff_of_a_fleet_names_the_row_that_cannot_be_asked(small_matrix, tmp_path: Path):
    path = tmp_path / "fleet.yaml"
    path.write_text('- {gpu: sm120, head_layout: "gqa:32/8x128"}\n- {gpu: "RTX 509"}\n')
    with pytest.raises(UnknownError, match=r"fleet.yaml:2 GPU 'RTX 509'"):
        diff_fleet(path, "0.27.0", "0.33.0")


def test_an_overlay_that_is_no_folder_is_told_and_not_left_out(small_matrix, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("NVDASH_MATRIX_PATH", str(tmp_path / "mistyped"))
    with pytest.raises(UsageError, match="mistyped is none"):
        check(LLAMA)


def test_an_empty_fleet_is_refused(small_matrix, tmp_path: Path):
    path = tmp_path / "fleet.yaml"
    path.write_text("")
    with pytest.raises(UsageError, match="at least one configuration"):
        check_fleet_file(path, {})


def test_facts_of_a_release_without_any_are_unknown_with_the_nearest_name(small_matrix):
    with pytest.raises(UnknownError, match=r"0\.33\.0"):
        facts("vllm", "0.33.1")


def test_a_grid_names_its_axes_and_values(small_matrix):
    answer = pivot({**LLAMA, "gpu": "sm120"}, "arch", "kv_cache_dtype")
    assert answer["rows"] == {"axis": "arch", "values": ("sm90", "sm120")}
    assert answer["columns"]["values"] == ("auto", "fp8", "nvfp4")
    assert answer["cells"][1][2]["verdict"] == "expected"
    assert (answer["question"]["gpu"], answer["question"]["kv_cache_dtype"]) == (None, None)
    with pytest.raises(UsageError, match="two different axes"):
        pivot(LLAMA, "arch", "arch")
    with pytest.raises(UsageError, match="kv_cache_dtype"):
        pivot(LLAMA, "arch", "kv_dtype")


def test_a_diff_counts_changes_over_the_axes_that_were_left_open(small_matrix):
    answer = diff({"head_layout": "gqa:32/8x128", "weights": "bf16"}, "0.27.0", "0.33.0")
    assert answer["counts"] == {"gained": 2, "lost": 0, "new_trap": 0, "changed": 0, "unchanged": 4}
    assert {(row["arch"], row["kv_cache_dtype"]) for row in answer["changes"]} == {
        ("sm90", "nvfp4"),
        ("sm120", "nvfp4"),
    }
    unread = diff(LLAMA, "0.27.0", "0.31.0")
    assert unread["unread"] == ["0.31.0"]
    assert (unread["counts"]["lost"], unread["counts"]["changed"]) == (0, 1)
    assert diff({**LLAMA, "kv_cache_dtype": "fp8"}, "0.27.0", "0.31.0")["counts"]["lost"] == 0


def test_the_cpu_platform_is_a_target_of_its_own(small_matrix):
    (small_matrix / "vllm" / "cpu.yaml").write_text(
        "- id: cpu\n  kind: priority\n  when: {arch: cpu}\n  since: '0.33.0'\n  order: [CPU_ATTN]\n"
        "- id: phantom\n  when: {arch: cpu, backend: CPU_ATTN, kv_cache_dtype: nvfp4}\n  since: '0.33.0'\n"
        "  verdict: trap\n  layer: silent\n  reason: stored at one byte per value\n"
    )
    answer = check({**LLAMA, "gpu": "cpu"})
    assert (answer["verdict"], answer["layer"], answer["resolved"]["backend"]) == ("trap", "silent", "CPU_ATTN")
    assert exit_code(answer) == 1
