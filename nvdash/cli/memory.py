"""`./run memory`: does it fit, which pool binds, what would a smaller cache buy."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json

COUNT = click.IntRange(1)
FLAGS = (
    click.option("--model", help="Catalogue name, config.json, folder or Hugging Face id."),
    click.option("--gpu", help='A product ("H200 SXM"), a capability (sm120) or custom:NAME:GiB:smXX.'),
    click.option("--framework", default="vllm", show_default=True, help="vllm, sglang, tensorrt-llm."),
    click.option("--release", help="Any release from vLLM 0.2.5 on; the newest read one by default."),
    click.option("--weights", help="A weight format, or a quantisation flag; that of the checkpoint by default."),
    click.option("--checkpoint", help="A folder, index or repository whose tensors are listed for exact weights."),
    click.option("--kv-cache-dtype", default="auto", show_default=True, help="The framework's own flag word."),
    click.option("--kv-cache-dtype-skip-layers", help="Layers that keep the 16-bit type: numbers, or sliding_window."),
    click.option("--tp", type=COUNT, default=1, show_default=True, help="Tensor parallel size."),
    click.option("--pp", type=COUNT, default=1, show_default=True, help="Pipeline parallel size."),
    click.option("--pp-layers", help="Layers per pipeline stage: 16,32."),
    click.option("--dcp", type=COUNT, default=1, show_default=True, help="Decode context parallel size."),
    click.option("--layers", type=COUNT, help="Only the first layers of the model."),
    click.option("--max-model-len", type=COUNT, help="The length served; the model's own by default."),
    click.option("--max-num-batched-tokens", type=COUNT, help="Tokens of one engine step."),
    click.option("--context", type=COUNT, help="Tokens of one request."),
    click.option("--concurrency", type=COUNT, help="Requests at once."),
    click.option("--gpu-memory-utilization", type=float, help="The engine's fraction; its own default otherwise."),
    click.option("--prefix-caching/--no-prefix-caching", default=None, help="The release's own default otherwise."),
    click.option("--block-size", type=COUNT, help="Tokens per block, where a flag or backend fixes it."),
    click.option("--num-gpu-blocks-override", type=COUNT, help="Blocks, whatever the memory."),
    click.option("--draft-method", help="mtp, eagle3, ngram, …"),
    click.option("--draft-tokens", type=COUNT, help="Speculative tokens per step."),
    click.option("--draft-model", help="The config of a separate drafter."),
    click.option("--backend", help="Attention backend, for the verdict."),
    click.option("--available-kv-gib", help="The cache's memory in GiB, one number or one per rank; skips the budget."),
    click.option("--log", help="Replay a serving log and compare with what it printed."),
    click.option("--solve", type=click.Choice(["context", "concurrency", "gpus", "kv-cache-dtype"])),
)
"""The flags of a memory question."""


def memory_flags(function: Any) -> Any:
    """Add the flags of a memory question to a command."""
    for option in reversed(FLAGS):
        function = option(function)
    return function


@click.command()
@memory_flags
@answers_json
def command(**flags: Any) -> Outcome:
    """Does it fit, which pool binds, and what would smaller weights or a smaller cache really buy."""
    from nvdash.answers.memory import exit_code, memory

    answer = memory(flags)
    return answer, exit_code(answer), lines


def lines(answer: Mapping[str, Any]) -> Iterable[Any]:
    """The answer as a newcomer reads it: one sentence, weights and cache apart, where each number is from."""
    from nvdash.cli.memory_text import log_lines, memory_lines

    return log_lines(answer) if "predicted_against_printed" in answer else memory_lines(answer)
