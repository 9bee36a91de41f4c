"""`./run check`: is this combination supported, stage by stage, and who says so."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nvdash.cli.output import Outcome, answers_json

FLAGS = (
    click.option("--framework", default="vllm", show_default=True, help="vllm, sglang, tensorrt-llm."),
    click.option("--release", help="Exactly as the framework writes it; the newest read one by default."),
    click.option("--gpu", help='A product ("RTX 5090"), a capability (sm120) or custom:NAME:GiB:smXX.'),
    click.option("--model", help="Catalogue name, config.json, folder or Hugging Face id."),
    click.option("--head-layout", help="Instead of a model: gqa:64/8x128, mla:128/1x576/512, …,window=1024,sinks."),
    click.option("--checkpoint", help="The checkpoint that is served, where it is not the model itself."),
    click.option("--weights", help="bf16, a format of a known checkpoint, or a quantisation flag."),
    click.option("--kv-cache-dtype", default="auto", show_default=True, help="The framework's own flag word."),
    click.option("--backend", help="Attention backend; the release's own choice by default."),
    click.option("--prefill-backend", help="Where prefill and decode choose apart."),
    click.option("--decode-backend", help="Where prefill and decode choose apart."),
    click.option("--tp", type=click.IntRange(1), default=1, show_default=True, help="Tensor parallel size."),
    click.option("--pp", type=click.IntRange(1), default=1, show_default=True, help="Pipeline parallel size."),
    click.option("--dcp", type=click.IntRange(1), default=1, show_default=True, help="Decode context parallel size."),
    click.option("--draft-method", help="eagle, eagle3, mtp, ngram, …"),
    click.option("--draft-model", help="The drafter itself: catalogue name, config.json, folder or Hugging Face id."),
    click.option("--draft-tokens", type=click.IntRange(1), help="Speculative tokens per step."),
    click.option("--draft-kv-cache-dtype", help="The drafter's cache dtype; the target's by default."),
    click.option("--sinks/--no-sinks", default=None, help="Attention sinks; the model's own by default."),
)
"""The flags of a support question, shared with other commands that take one."""


def support_flags(function: Any) -> Any:
    """Add the flags of a support question to a command."""
    for option in reversed(FLAGS):
        function = option(function)
    return function


@click.command()
@support_flags
@click.option("--fleet", type=click.Path(path_type=Path), help="A YAML list of configurations, keys as the flags.")
@click.option(
    "--require",
    type=click.Choice(["validated", "expected", "conditional"]),
    default="conditional",
    show_default=True,
    help="The verdict that exit code 0 asks for.",
)
@answers_json
def command(fleet: Path | None, **flags: Any) -> Outcome:
    """Is this combination supported, stage by stage; if not, who refuses and where does the source say so."""
    from nvdash.answers import check as answers

    if fleet is not None:
        answer = answers.check_fleet_file(fleet, flags)
        return answer, answers.exit_code(answer), fleet_lines
    answer = answers.check(flags)
    return answer, answers.exit_code(answer), lines


def lines(answer: Mapping[str, Any]) -> Iterable[Any]:
    """The answer as a newcomer reads it: one sentence, the stages, what else, what would work."""
    from nvdash.answers.sentences import assumption_lines, support_sentence

    yield support_sentence(answer)
    yield from (f"! conflict: {conflict}" for conflict in answer["conflicts"])
    yield ""
    yield from stage_lines(answer)
    yield from _listed("Backends passed over", [tried_line(row) for row in answer["skipped_backends"]])
    yield from _listed("Conditions", answer["unmet_conditions"])
    yield from _listed("Taken for granted", assumption_lines(answer))
    yield from _listed("Warnings", _warnings(answer))
    yield from _listed(
        "Reported by others", [f"{report['url']} {report.get('claim', '')}" for report in answer["reports"]]
    )
    yield from _listed("Notes", answer["notes"])
    yield from _listed("Nearest that runs", [nearest_line(change) for change in answer["nearest"]])
    yield footer(answer)


def footer(answer: Mapping[str, Any]) -> str:
    """Which matrix answered, and how old its newest release is."""
    days = answer["newest_release_age_days"]
    age = "date unknown" if days is None else f"{days} days old"
    return f"matrix {answer['matrix_digest']}, newest release read {answer['newest_release']} ({age})"


def stage_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Stage, verdict, path and evidence in columns that stay on one line; the reason below, once."""
    from nvdash.answers.words import STAGES, VERDICTS

    rows = [("Stage", "Verdict", "Path", "Evidence", "")]
    for name, stage in answer["stages"].items():
        path = ", ".join(filter(None, (stage.get("backend"), stage["path"], stage["kernel"])))
        why = "; ".join(filter(None, (stage["reason"], stage.get("note"))))
        rows.append((STAGES[name], str(VERDICTS[stage["verdict"]]), path, evidence_text(stage["evidence"]), why))
    before = ""
    for line, why in zip(aligned([row[:4] for row in rows]), (row[4] for row in rows), strict=True):
        yield line
        if why and why != before:
            yield f"  {why}"
        before = why or before


def aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Rows as columns of equal width; nothing is folded, so that a citation can be copied."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def evidence_text(evidence: Mapping[str, Any] | None) -> str:
    """`file:line (release)`, a run, or nothing."""
    if evidence is None:
        return "none"
    if "run" in evidence:
        return f"run {evidence['run'][:8]} ({evidence['level']})"
    if "file" in evidence:
        return f"{evidence['file']}:{evidence.get('line') or '?'} ({evidence.get('release') or evidence.get('commit')})"
    return str(evidence.get("url") or evidence.get("level"))


def tried_line(row: Mapping[str, Any]) -> str:
    """One backend that the selector skipped, why, and where that is written."""
    return f"{row['backend']}: {row['reason'] or 'refused'} [{evidence_text(row['evidence'])}]"


def nearest_line(change: Mapping[str, Any]) -> str:
    """One change and what it gives."""
    from nvdash.answers.words import VERDICTS

    flag = {"arch": "gpu"}.get(change["axis"], change["axis"]).replace("_", "-")
    return f"--{flag} {change['to']} (now {change['from'] or 'auto'}): {VERDICTS[change['verdict']]}"


def fleet_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """The worst verdict, then one line per configuration."""
    from nvdash.answers.words import VERDICTS

    yield f"{VERDICTS[answer['verdict']]}: the worst of {len(answer['rows'])} configurations"
    rows = [("Configuration", "Verdict", "Layer", "Why")]
    for number, row in enumerate(answer["rows"], 1):
        name = row["name"] or f"row {number}"
        if "error" in row:
            rows.append((name, "not answered", "", _refusal(row["error"])))
        else:
            rows.append((name, str(VERDICTS[row["verdict"]]), row["layer"] or "", row["reason"] or ""))
    yield from aligned(rows)


def _refusal(error: Mapping[str, str]) -> str:
    told = f"{error['where']}: {error['found']}"
    return f"{told} ({error['hint']})" if error["hint"] else told


def _warnings(answer: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(text for stage in answer["stages"].values() for text in stage.get("warnings", ())))


def _listed(title: str, items: Iterable[str]) -> Iterable[str]:
    rows = [f"  {item}" for item in items]
    return [title, *rows] if rows else []
