"""A plan from a question: the matrix decides the backend, the catalogue the checkpoints."""

import json

import pytest
from click.testing import CliRunner

from nvdash.answers import plan as answers
from nvdash.cli import plan as command
from nvdash.errors import UnknownError, UsageError
from nvdash.readers.matrix import Matrix, Release
from tests.support.conftest import rules_of

QUESTION = {"framework": "vllm", "release": "0.33.0", "gpu": "RTX 5090", "model": "meta-llama/Llama-3.1-8B-Instruct"}
EVIDENCE = {"release": "0.33.0", "file": "a.py", "line": 1}


def statement(name, backend, cache, verdict, **more):
    row = {"id": name, "since": "0.33.0", "verdict": verdict, "evidence": EVIDENCE, "evidence_level": "source"}
    stages = ["kv_write", "prefill", "decode"]
    when = {"backend": backend, "kv_cache_dtype": cache}
    return {**row, "kind": "support", "stage": stages, "when": when, **more}


def weights(name, form):
    row = {"id": name, "since": "0.33.0", "verdict": "expected", "evidence": EVIDENCE, "evidence_level": "source"}
    return {**row, "kind": "quant", "stage": ["weights"], "when": {"weights": form}}


@pytest.fixture
def matrix():
    """Two backends: one takes both caches, the other refuses NVFP4."""
    wide = ["bfloat16", "auto"]
    refusal = {"layer": "selector", "reason": "kv_cache_dtype not supported"}
    rows = [
        statement("a", "FLASHINFER", [*wide, "nvfp4"], "expected"),
        statement("b", "FLASH_ATTN", wide, "expected"),
        statement("c", "FLASH_ATTN", "nvfp4", "refused", **refusal),
        weights("d", "bf16"),
        weights("e", "nvfp4"),
    ]
    made = Matrix()
    made._rules["vllm"] = rules_of("vllm", rows, [Release("0.33.0", source="sdist")])
    return made


def test_the_backend_is_the_one_that_takes_all_four(matrix):
    answer = answers.plan(QUESTION, matrix)
    assert answer["backend"] == "FLASHINFER"
    assert answer["sentence"] == "FLASHINFER is valid for all four configurations."
    assert answers.exit_code(answer) == 0
    files = [row["file"] for row in answer["scripts"]]
    cells = ["wide", "weights", "cache", "both"]
    both = [f"{which}/{cell}.sh" for which in ("equal-utilisation", "equal-blocks") for cell in cells]
    assert files == [*both, "equal-utilisation/deployed.sh"]
    assert {row["metadata"]["model"] for row in answer["scripts"]} == {cell["checkpoint"] for cell in answer["cells"]}
    assert len(answer["checklist"]) == 2 * 4 * 3


def test_a_refused_cell_stays_empty(matrix):
    answer = answers.plan({**QUESTION, "backend": "FLASH_ATTN"}, matrix)
    assert answers.exit_code(answer) == 1
    empty = [row for row in answer["scripts"] if row["script"] is None]
    assert {row["cell"] for row in empty} == {"cache", "both"}
    assert all(row["reason"].startswith("refused by selector: kv_cache_dtype not supported") for row in empty)
    assert "these stay empty: Cache only, Both" in answer["sentence"]


def test_a_model_without_an_nvfp4_checkpoint_has_empty_cells(matrix):
    answer = answers.plan({**QUESTION, "model": "tiiuae/falcon-7b"}, matrix)
    why = {cell["cell"]: cell["empty_because"] for cell in answer["cells"]}
    assert why["weights"] == why["both"] == "no nvfp4 checkpoint of this model is known"
    assert [row["cell"] for row in answer["scripts"] if row["script"]] == ["wide", "cache"] * 2
    assert answer["workload"]["name"] == "random-1024x512"  # falcon-7b takes 2,048 tokens
    assert "too few tokens for a long-context task" in answer["notes"][0]


def test_weights_that_do_not_fit_leave_their_cells_empty(matrix):
    answer = answers.plan({**QUESTION, "model": "meta-llama/Llama-3.1-70B-Instruct"}, matrix)
    why = {cell["cell"]: cell["empty_because"] for cell in answer["cells"]}
    assert why["wide"] == why["cache"] == "the weights do not fit: raise --tp"


def test_a_release_without_a_word_for_16_bits_is_asked_for_auto():
    asked = {"gpu": "b200-hgx", "model": "Qwen/Qwen3-8B", "kv_cache_dtype": "fp8", "release": "0.19.1"}
    answer = answers.plan(asked)
    cells = {row["cell"]: row for row in answer["cells"]}
    assert (cells["wide"]["verdict"], cells["wide"]["resolved_cache"]) == ("expected", "bfloat16")
    assert any("asked for as auto: this release takes no word for 16 bits" in note for note in answer["notes"])
    wide = next(row for row in answer["scripts"] if row["file"] == "equal-utilisation/wide.sh")
    assert "--kv-cache-dtype auto" in wide["script"]
    assert (cells["weights"]["verdict"], cells["weights"]["resolved_cache"]) == ("unknown", None)
    assert "auto becomes an unknown dtype with nvidia/Qwen3-8B-NVFP4" in cells["weights"]["reason"]


def test_your_own_requests_are_named_by_their_content(matrix, tmp_path):
    own = tmp_path / "mine.jsonl"
    own.write_text('{"prompt": "hello"}\n')
    answer = answers.plan({**QUESTION, "requests": own}, matrix)
    assert answer["workload"]["name"].startswith("mine.jsonl-")
    other = tmp_path / "other" / "mine.jsonl"
    other.parent.mkdir()
    other.write_text('{"prompt": "bye"}\n')
    assert answers.plan({**QUESTION, "requests": other}, matrix)["workload"]["name"] != answer["workload"]["name"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"gpu": None}, UsageError, "--gpu"),
        ({"model": None}, UsageError, "--model"),
        ({"framework": "llama.cpp"}, UnknownError, "no plan is written"),
        ({"requests": "nowhere.jsonl"}, UsageError, "readable request file"),
    ],
)
def test_a_plan_of_nothing_is_refused(matrix, change, error, says):
    with pytest.raises(error, match=says):
        answers.plan({**QUESTION, **change}, matrix)


def test_the_command_writes_the_scripts_once(matrix, tmp_path, monkeypatch):
    plan = answers.plan
    monkeypatch.setattr(answers, "plan", lambda question: plan(question, matrix))
    words = [f"--{name}={value}" for name, value in QUESTION.items()]
    done = CliRunner().invoke(command.command, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "bash equal-utilisation/wide.sh" in done.output
    assert len(list((tmp_path / "out").rglob("*.sh"))) == 9
    again = CliRunner().invoke(command.command, [*words, "--out", str(tmp_path / "out"), "--json"])
    assert again.exit_code == 2
    assert json.loads(again.stdout)["error"]["expected"] == "an empty or a new folder"
