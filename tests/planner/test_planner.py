"""The scripts of a plan run, say everything of themselves, and differ only in what they compare."""

import json
import shlex
import stat
import subprocess

import pytest

from nvdash.planner.checklist import checklist
from nvdash.planner.choice import choose
from nvdash.planner.scripts import facts, script
from nvdash.planner.values import CELLS, Candidate, Engine, Formats, Job, Request, Workload
from nvdash.readers.plan_files import engine_row

FORMATS = Formats("bf16", "nvfp4", "nvfp4", "org/wide", "org/narrow-NVFP4", {"bf16": 16_000, "nvfp4": 6_000})
WORKLOAD = Workload("random-64x8", 64, 8, (1, 2), 2, 3, "gsm8k_cot", "ruler_vt", 32768)
RESULT_FORMATS_KEYS = (
    "gpu gpu_count tp vllm_version weight_format kv_cache_dtype attention_backend gpu_memory_utilization max_num_seqs"
    " max_num_batched_tokens prefix_caching dataset input_len output_len"
).split()


def engine(framework):
    return Engine(**{k: tuple(v) if isinstance(v, list) else v for k, v in engine_row(framework).items()})


def job(cell, which="equal-utilisation", framework="vllm", backend="FLASHINFER", **changes):
    request = Request(framework, "0.33.0", "RTX 5090", "org/wide", tp=2, max_model_len=40_000)
    parts = {"formats": FORMATS, "workload": WORKLOAD, **changes}
    return Job("1a2b3c4d", request, engine(framework), parts["formats"], parts["workload"], backend, cell, which)


def rows(*verdicts):
    return [Candidate(cell, verdict) for cell, verdict in zip(CELLS, verdicts, strict=True)]


def test_the_backend_that_is_valid_for_all_four_is_chosen():
    backend, sentence = choose(
        {
            "A": rows("validated", "validated", "refused", "refused"),
            "B": rows("expected", "conditional", "expected", "expected"),
        }
    )
    assert backend == "B"
    assert sentence == "B is valid for all four configurations."


def test_no_backend_for_all_four_is_said_and_nothing_is_put_in_its_place():
    backend, sentence = choose(
        {
            "A": rows("expected", "expected", "refused", "refused"),
            "B": rows("refused", "refused", "expected", "trap"),
        }
    )
    assert backend == "A"
    assert "No backend is valid for all four" in sentence
    assert "Cache only, Both" in sentence


def test_an_unknown_cell_is_no_refusal_and_no_promise():
    backend, sentence = choose({"A": rows("expected", "expected", "unknown", "unknown")})
    assert backend == "A"
    assert "unknown: Cache only, Both" in sentence


def test_nothing_runs_and_nothing_known_are_two_answers():
    assert choose({"A": rows("refused", "trap", "refused", "refused")})[0] is None
    assert "No backend runs any" in choose({"A": rows("refused", "trap", "refused", "refused")})[1]
    assert "is known" in choose({})[1]


@pytest.mark.parametrize("framework", ["vllm", "sglang"])
@pytest.mark.parametrize("which", ["equal-utilisation", "equal-blocks"])
@pytest.mark.parametrize("cell", [*CELLS, "deployed"])
def test_every_script_is_bash(framework, which, cell):
    text = script(job(cell, which, framework))
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def served(text):
    (line,) = [line for line in text.splitlines() if line.endswith('>> "$OUT/server.log" 2>&1 &')]
    return shlex.split(line.split(" >> ")[0])


@pytest.mark.parametrize("framework", ["vllm", "sglang"])
def test_the_cells_differ_only_in_checkpoint_and_cache(framework):
    lines = {cell: served(script(job(cell, framework=framework))) for cell in CELLS}
    wide = engine(framework).wide_cache
    told = {cell: {"org/wide", "org/narrow-NVFP4", wide, "nvfp4"} & set(words) for cell, words in lines.items()}
    assert told == {
        "wide": {"org/wide", wide},
        "weights": {"org/narrow-NVFP4", wide},
        "cache": {"org/wide", "nvfp4"},
        "both": {"org/narrow-NVFP4", "nvfp4"},
    }
    compared = ("org/wide", "org/narrow-NVFP4", wide, "nvfp4")
    assert len({tuple(word for word in words if word not in compared) for words in lines.values()}) == 1


def test_the_flags_are_those_of_the_framework():
    vllm = served(script(job("both")))
    assert vllm[:3] == ["vllm", "serve", "org/narrow-NVFP4"]
    for flag, value in (
        ("--tensor-parallel-size", "2"),
        ("--kv-cache-dtype", "nvfp4"),
        ("--attention-backend", "FLASHINFER"),
        ("--gpu-memory-utilization", "0.9"),
        ("--max-model-len", "40000"),
    ):
        assert vllm[vllm.index(flag) + 1] == value
    assert "--no-enable-prefix-caching" in vllm
    sglang = served(script(job("both", framework="sglang", backend="trtllm_mha")))
    assert "--disable-radix-cache" in sglang
    assert sglang[sglang.index("--mem-fraction-static") + 1] == "0.85"


def test_equal_blocks_takes_its_size_from_the_widest_cell():
    text = script(job("cache", "equal-blocks"))
    assert '--num-gpu-blocks-override "$BLOCKS"' in text
    assert "run the equal-utilisation script of the widest cell first" in text
    assert "--num-gpu-blocks-override" not in script(job("cache"))


def test_as_deployed_leaves_the_choices_to_the_engine():
    words = served(script(job("deployed", backend="")))
    assert "--kv-cache-dtype" in words
    for flag in ("--attention-backend", "--gpu-memory-utilization", "--max-num-seqs", "--no-enable-prefix-caching"):
        assert flag not in words
    assert "attention_backend" not in facts(job("deployed", backend=""))


def test_the_metadata_is_the_complete_fixed_set():
    said = script(job("both")).split("--metadata", 1)[1].split("\n    curl")[0]
    named = {word.split("=")[0] for word in said.replace('"', " ").split()}
    assert set(RESULT_FORMATS_KEYS) <= named


def test_what_no_file_states_is_set_at_submission_so_that_no_control_stays_unknown():
    from nvdash.tradeoffs.controls import controls

    said = {
        **facts(job("both")),
        "gpu": "rtx-5090",
        "model_base": "org/wide",
        "gpu_count": 2,
        "tp": 2,
        "max_model_len": 40_000,
    }
    said |= {"num_prompts": 6, "max_concurrency": 2, "request_rate_rps": "inf", "enable_prefix_caching": False}
    assert [name for name, value in controls(said).items() if value is None] == []


def test_a_hostile_checkpoint_name_stays_a_word(tmp_path):
    evil = Formats("bf16", "nvfp4", "nvfp4", "a b'$(touch PWNED)`touch PWNED`\"", "x", {})
    text = script(job("wide", formats=evil))
    run_script(tmp_path, text)
    assert not list(tmp_path.rglob("PWNED"))


def test_your_own_requests_take_the_place_of_the_pinned_workload():
    own = Workload("mine.jsonl-12345678", 64, 8, (1,), 1, 3, "gsm8k_cot", "ruler_vt", 32768, requests="my file.jsonl")
    text = script(job("wide", workload=own))
    assert "--dataset-name custom --dataset-path 'my file.jsonl'" in text
    assert "random" not in text
    assert "isl_target" not in facts(job("wide", workload=own))


FAKES = {
    "python3": 'echo "0.33.0"',
    "nvidia-smi": 'echo "NVIDIA GeForce RTX 5090"',
    "sleep": "exec /bin/sleep 0.05",
    "lm_eval": """
        while [ "$1" != --output_path ]; do shift; done
        mkdir -p "$2/m"
        touch "$2/m/results_1.json" "$2/m/samples_a_1.jsonl"
    """,
    "curl": """
        [ -e "$LOG/serve" ] || exit 7
        echo 'vllm:cache_config_info{num_gpu_blocks="777"} 1'
    """,
    "vllm": """
        if [ "$1" = serve ]; then
            echo ready
            trap 'rm -f "$LOG/serve"; exit' TERM
            printf '%s\\n' "$@" | tee "$LOG/served" > "$LOG/serve"
            while :; do /bin/sleep 0.05; done
        fi
        while [ "$1" != --result-dir ]; do shift; done
        touch "$2/bench.json"
    """,
    "nvdash": 'printf \'%s\\n\' "$*" >> "$LOG/submitted"',
}


def run_script(folder, text, **environment):
    """Run a script where every program is a fake that writes down how it was called."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, body in FAKES.items():
        path = programs / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "LOG": str(folder), "NVDASH": "nvdash", **environment}
    pipes = {"input": text, "text": True, "capture_output": True}
    return subprocess.run(["bash"], cwd=folder, env=variables, timeout=60, check=False, **pipes)


def test_a_script_serves_loads_judges_and_submits(tmp_path):
    done = run_script(tmp_path, script(job("wide")))
    assert done.returncode == 0, done.stderr
    submitted = (tmp_path / "submitted").read_text().splitlines()
    assert len(submitted) == 2 * 2 + 2 + 2  # two loads and prefill alone, two repeats each; two tasks
    assert submitted[0].startswith("submit plan-1a2b3c4d/equal-utilisation/wide/c1-r1/bench.json ")
    assert "--set gpu=NVIDIA GeForce RTX 5090" in submitted[0]
    assert "--set model_bytes=16000" in submitted[0]
    assert "results_1.json" in submitted[-1]
    assert "samples_a_1.jsonl" in submitted[-1]
    prefill = [line for line in submitted if "prefill-c1-r" in line]
    assert all(line.endswith("--set workload=random-64x1 --set osl_target=1") for line in prefill)
    assert len(prefill) == 2
    log = tmp_path / "plan-1a2b3c4d/equal-utilisation/wide/c2-r2/server.log"
    assert log.read_text() == "ready\n"
    done = run_script(tmp_path, script(job("cache", "equal-blocks")))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "served").read_text().splitlines()[-2:] == ["--num-gpu-blocks-override", "777"]


def test_a_script_refuses_another_release(tmp_path):
    text = script(job("wide")).replace("0.33.0", "0.32.0")
    done = run_script(tmp_path, text)
    assert done.returncode == 1
    assert "this plan is for vllm 0.32.0, found 0.33.0" in done.stderr


def test_equal_blocks_before_the_first_set_stops(tmp_path):
    done = run_script(tmp_path, script(job("wide", "equal-blocks")))
    assert done.returncode != 0
    assert not (tmp_path / "served").exists()


def test_a_server_that_answers_already_is_not_taken_for_ours(tmp_path):
    (tmp_path / "serve").touch()
    done = run_script(tmp_path, script(job("wide")))
    assert (done.returncode, (tmp_path / "served").exists()) == (1, False)
    assert "another server answers on port 8000" in done.stderr


def stored(cell, load, **changes):
    weights, side, _ = FORMATS.of(cell)
    cache = "nvfp4" if side == "narrow" else "bfloat16"
    run = {"run_id": f"{cell}{load}", "framework": "vllm", "version": "0.33.0", "tp": 2, "workload": "random-64x8"}
    run |= {"attention_backend": "flashinfer", "tag": "equal-utilisation", "max_concurrency": load}
    return {**run, "weight_format": weights, "kv_cache_dtype_requested": cache, **changes}


def test_the_checklist_fills_as_runs_arrive():
    def done(runs):
        found = checklist(job("wide").request, engine("vllm"), FORMATS, WORKLOAD, "FLASHINFER", runs, CELLS)
        return {(row["set"], row["cell"], row["concurrency"]): row["done"] for row in found}

    empty = done([])
    assert len(empty) == 2 * 4 * 2
    assert set(empty.values()) == {"0 of 2 repeats"}
    runs = [stored("both", 1), stored("both", 1), stored("cache", 2), stored("wide", 1, version="0.32.0")]
    filled = done(runs)
    assert filled["equal-utilisation", "both", 1] == "2 of 2 repeats"
    assert filled["equal-utilisation", "cache", 2] == "1 of 2 repeats"
    assert filled["equal-utilisation", "wide", 1] == "0 of 2 repeats"
    assert filled["equal-blocks", "both", 1] == "0 of 2 repeats"


def test_equal_questions_make_equal_plans():
    first, second = job("wide").request, job("both").request
    assert first.plan_id("x") == second.plan_id("x")
    assert first.plan_id("x") != first.plan_id("y")
    assert json.dumps(first.plan_id("x"))[1:-1] == first.plan_id("x")
