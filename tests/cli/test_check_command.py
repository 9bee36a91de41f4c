"""`./run check` and `./run matrix` as a person and as a job use them."""

import json

import pytest
from click.testing import CliRunner

from nvdash.cli import main
from tests.support.conftest import small_matrix as small_matrix  # the fixture

LLAMA = [
    "--gpu",
    "RTX 5090",
    "--model",
    "meta-llama/Llama-3.1-8B-Instruct",
    "--weights",
    "bf16",
    "--kv-cache-dtype",
    "nvfp4",
]


def run(*words: str):
    return CliRunner().invoke(main, list(words))


@pytest.fixture(autouse=True)
def _small(small_matrix):
    return small_matrix


def test_the_first_line_is_the_answer_and_the_table_names_file_and_line():
    ran = run("check", "--release", "0.33.0", *LLAMA)
    assert ran.exit_code == 0
    first = ran.output.splitlines()[0]
    assert first.startswith("◐ Expected: vLLM 0.33.0 should run BF16 weights with NVFP4 cache on rtx-5090 (sm120)")
    assert "Prefill      ◐ Expected  FLASHINFER, dequant  flashinfer.py:653 (0.33.0)\n" in ran.output
    assert "Weight GEMM  ◐ Expected  unquantised          none\n  no quantisation method is involved\n" in ran.output


def test_a_refusal_says_who_refuses_and_what_runs_instead():
    ran = run("check", "--release", "0.27.0", *LLAMA)
    assert ran.exit_code == 1
    assert ran.output.startswith("✕ Refused: vLLM 0.27.0 refuses")
    assert "FLASH_ATTN: kv_cache_dtype not supported [flash_attn.py:3 (0.27.0)]" in ran.output
    assert "--release 0.32.0 (now 0.27.0): ◐ Expected" in ran.output


def test_an_unread_release_is_named_in_the_framework_s_own_spelling():
    ran = run("check", "--release", "0.34.0", *LLAMA)
    assert "is unknown. vLLM 0.34.0 was not read; the nearest read release is 0.33.0.\n" in ran.output


def test_json_is_one_object_on_stdout():
    ran = run("check", "--release", "0.34.0", *LLAMA, "--json")
    answer = json.loads(ran.stdout)
    assert (ran.exit_code, answer["verdict"], answer["nearest_release"]) == (3, "unknown", "0.33.0")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["check", "--tp", "x"], "'x' is not a valid integer range"),
        (["check", "--no-such-flag"], "No such option"),
        (["matrix", "diff"], "Missing option '--from'"),
        (["chek"], "No such command 'chek'"),
    ],
)
def test_a_wrong_flag_is_answered_in_json_too(words, found):
    ran = run(*words, "--json")
    answer = json.loads(ran.stdout)
    assert (ran.exit_code, answer["schema"]) == (2, "nvdash.error/1")
    assert found in answer["error"]["found"] and "Error:" in ran.stderr
    assert run(*words).stdout == ""


def test_a_wrong_name_leaves_stdout_to_the_json_error_and_tells_stderr():
    ran = run("check", "--gpu", "RTX 5091", "--json")
    assert ran.exit_code == 3
    assert json.loads(ran.stdout)["error"]["where"] == "GPU 'RTX 5091'"
    assert "RTX 5090" in ran.stderr


def test_the_bar_for_zero_is_chosen_with_require():
    assert run("check", *LLAMA, "--require", "expected").exit_code == 0
    assert run("check", *LLAMA, "--require", "validated").exit_code == 1


def test_a_fleet_file_is_answered_line_by_line(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_text('- {name: new, gpu: sm120, head_layout: "gqa:32/8x128"}\n- {name: odd, gpu: nothing}\n')
    ran = run("check", "--fleet", str(path), "--weights", "bf16", "--kv-cache-dtype", "nvfp4")
    assert ran.exit_code == 3
    assert "the worst of 2 configurations" in ran.output
    assert "not answered" in ran.output


def test_a_slip_in_the_matrix_is_shown_with_its_place_and_no_traceback(small_matrix):
    (small_matrix / "vllm" / "slip.yaml").write_text("- id: a\n  since: 0.10\n  when: {}\n  verdict: expected\n")
    ran = run("check", *LLAMA)
    assert ran.exit_code == 2
    assert (
        'matrix/vllm/slip.yaml:2 a.since: expected a quoted version, got the number 0.1\n  hint: write "0.10"'
        in ran.stderr
    )


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (["verdict", *LLAMA], 0, "◐ Expected"),
        (["timeline", *LLAMA], 0, "≤0.32.0 to 0.33.0"),
        (["nearest", "--release", "0.27.0", *LLAMA], 0, "--kv-cache-dtype fp8 (now nvfp4)"),
        (["pivot", "--head-layout", "gqa:32/8x128", "--weights", "bf16"], 0, "◐ ≤0.32.0"),
        (["diff", "--from", "0.27.0", "--to", "0.33.0", *LLAMA], 0, "↑ 1 gained"),
        (["diff", "--from", "0.33.0", "--to", "0.27.0", *LLAMA], 1, "↓ 1 lost"),
        (["diff", "--from", "0.32.0", "--to", "0.33.0", *LLAMA], 0, "Nothing changed between 0.32.0 and 0.33.0"),
        (["diff", "--from", "0.33.0", "--to", "0.33.0", *LLAMA], 0, "Same release on both sides."),
        (["diff", "--from", "0.31.0", "--to", "0.33.0", *LLAMA], 3, "0.31.0 was not read"),
        (["lint"], 0, "0 findings by 11 checks over 11 of vllm"),
        (["facts", "--release", "0.33.0"], 3, "a release with facts"),
    ],
)
def test_each_matrix_question_answers_in_words(words, code, shown):
    ran = run("matrix", *words)
    assert shown in ran.output.replace("\n", " ") + ran.stderr
    assert ran.exit_code == code


def test_facts_are_a_bare_list(small_matrix):
    facts = 'release: "0.33.0"\nfacts:\n- {fact: a.b, value: [1], path: a.py, line: null}\n'
    (small_matrix / "vllm" / "facts" / "0.33.0.yaml").write_text(facts)
    ran = run("matrix", "facts", "--release", "0.33.0", "--json")
    assert json.loads(ran.stdout) == [{"fact": "a.b", "value": [1], "path": "a.py", "line": None}]
    assert run("matrix", "facts", "--release", "0.33.0").output == "a.b: [1]  [a.py:?]\n"


def test_drift_reads_a_file_of_answers(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text(
        "backend,compute_capability,kv_cache_dtype,head_size,valid,reasons\n"
        "FLASHINFER,12.0,nvfp4,128,1,\nFLASHINFER,12.0,nvfp4,64,1,\n"
    )
    ran = run("matrix", "drift", "--cells", str(path), "--release", "0.33.0", "--json")
    answer = json.loads(ran.stdout)
    assert (ran.exit_code, answer["compared"]) == (1, 2)
    assert [(row["head_size"], row["statement"]) for row in answer["disagreements"]] == [(64, "fi-64")]


def test_a_report_of_the_reference_engine_proposes_no_file():
    ran = run("matrix", "propose", "data/smoke/reference-nvfp4.json")
    assert ran.exit_code == 1
    assert ran.output == (
        "# the reference engine proves our own arithmetic and no kernel: it changes nothing in the matrix\n"
    )


def test_a_report_of_an_engine_proposes_for_the_file_of_its_framework():
    ran = run("matrix", "propose", "data/smoke/vllm-cpu-fp8.json")
    assert ran.exit_code == 0
    assert ran.output.startswith("# for matrix/vllm/curated.yaml\n- id:")
