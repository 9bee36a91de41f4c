"""How near memory estimators come to what an engine prints (docs/accuracy.md).

    python tests/bench/accuracy.py [--hf-mem PYTHON] [--aiconfigurator PYTHON] [--write]

Every case is a public start-up log that prints the cache's memory and how many requests of one length it holds. Each
tool is asked for the bytes of one such request; the printed memory over them is its answer. A tool is run by the Python
that has it installed, named by a flag or by NVDASH_PYTHON_HF_MEM and NVDASH_PYTHON_AICONFIGURATOR; one that is not
named is "not run".
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nvdash.answers.memory import memory
from nvdash.readers import catalogue
from nvdash.readers.config import text_tower
from nvdash.targets import GIB

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "accuracy.md"
FLAGS = ("release", "tp", "dcp", "kv_cache_dtype", "block_size", "prefix_caching", "draft_method", "draft_tokens",
         "max_num_batched_tokens")  # fmt: skip
NOT_RUN, NO_ANSWER = "not run", "no answer"
HEADER = {"embed_tokens.weight": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}}
Case = Mapping[str, Any]
Ask = Callable[[Case], float | str]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, and how many requests it says the pool of a case holds."""

    name: str
    ask: Ask


def nvdash(case: Case) -> float | str:
    """Our own answer, from the memory as it was printed."""
    words = {flag: case[flag] for flag in FLAGS if flag in case}
    question = {"model": case["model"], "max_model_len": case["length"], "available_kv_gib": case["pool_gib"], **words}
    return float(memory(question)["max_concurrency"])


def driven(python: str | None, driver: str) -> Ask:
    """A tool in an interpreter of its own, by its driver."""

    def ask(case: Case) -> float | str:
        if python is None:
            return NOT_RUN
        with tempfile.TemporaryDirectory() as folder:
            write_model(Path(folder), case)
            question = {"folder": folder, "name": case["rival"], "length": case["length"], "tp": case.get("tp", 1)}
            words = json.dumps({**question, "kv_cache_dtype": case["kv_cache_dtype"]})
            command = [python, str(HERE / "drivers" / driver)]
            done = subprocess.run(command, input=words, capture_output=True, text=True, check=False)
        return requests_of(case, json.loads(done.stdout.strip().splitlines()[-1]))

    return ask


def write_model(folder: Path, case: Case) -> None:
    """A config.json and a header of one tensor: what an estimator reads of a checkpoint."""
    tower = text_tower(catalogue.load().model(case["model"]).config)
    (folder / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16", **tower}))
    header = json.dumps(HEADER).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))


def requests_of(case: Case, said: Mapping[str, Any]) -> float | str:
    """The printed memory over the tool's bytes of one request; a tool without TP is granted an even split."""
    if not said.get("kv_bytes"):
        return NO_ANSWER
    per_rank = said["kv_bytes"] if said.get("per_rank") else said["kv_bytes"] / case.get("tp", 1)
    return float(case["pool_gib"] * GIB / per_rank)


def rows(cases: Iterable[Case], tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Every case with every tool's answer."""
    tools = list(tools)
    return [{"case": case, "answers": {tool.name: tool.ask(case) for tool in tools}} for case in cases]


def shown(answer: float | str, right: float) -> str:
    """An answer beside the right one: the number, and how far off it is."""
    if isinstance(answer, str):
        return answer
    off = f"{answer / right:.1f} ×" if not 0.5 < answer / right < 2 else f"{100 * (answer / right - 1):+.1f} %"
    return f"{answer:,.2f} ({off})".replace("-", "−")


def page(table: list[dict[str, Any]]) -> str:
    """The whole document."""
    names = list(table[0]["answers"])
    lines = [
        "# Accuracy of memory estimates",
        "",
        "Written by `python tests/bench/accuracy.py --write`; do not edit. Every row is a public start-up log that",
        "prints the memory of its KV cache and how many requests of one length fit in it: the right answer. Each tool",
        "is asked for the same model, length, cache format and tensor parallelism, and gets the printed memory, which",
        "has two decimals: about 0.2 % is the resolution. `no answer`: the tool refuses model or format. A tool",
        "without tensor parallelism is granted an even split over the ranks; DCP and drafters are told only to a tool",
        "that has flags for them.",
        "",
        f"| model | what is special | tokens each | pool GiB | right | {' | '.join(names)} | source |",
        f"|{'---|' * (6 + len(names))}",
    ]
    for row in table:
        case, right = row["case"], row["case"]["requests"]
        cells = [case["model"], case["what"], f"{case['length']:,}", f"{case['pool_gib']:.2f}", f"{right:,.2f}"]
        cells += [shown(row["answers"][name], right) for name in names] + [case["source"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Print the answers as JSON, and write the page when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    named = {name: os.environ.get(f"NVDASH_PYTHON_{name}") for name in ("HF_MEM", "AICONFIGURATOR")}
    parser.add_argument("--hf-mem", default=named["HF_MEM"], help="the Python that has hf-mem installed")
    parser.add_argument("--aiconfigurator", default=named["AICONFIGURATOR"], help="the Python with aiconfigurator")
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    args = parser.parse_args()
    tools = [
        Tool("nvdash", nvdash),
        Tool("hf-mem", driven(args.hf_mem, "hf_mem_offline.py")),
        Tool("aiconfigurator", driven(args.aiconfigurator, "aiconfigurator_cache.py")),
    ]
    table = rows(yaml.safe_load((HERE / "accuracy_cases.yaml").read_text()), tools)
    if args.write:
        PAGE.write_text(page(table))
    answers = [{"model": row["case"]["model"], **row["answers"]} for row in table]
    json.dump({"requests": answers}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
