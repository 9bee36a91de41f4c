"""`./run matrix …`: the support matrix asked as a whole, checked, and compared with an installed engine."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from nvdash.cli.check import aligned, evidence_text, lines, nearest_line, support_flags
from nvdash.cli.output import Outcome, answers_json

STAGE = click.option("--stage", help="weights, kv_write, prefill or decode; the worst of all by default.")
FRAMEWORK = click.option("--framework", default="vllm", show_default=True)
EXTRACT = "extract"


class MatrixGroup(click.Group):
    """Loads `extract`, a maintainer's tool with imports of its own, only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), EXTRACT])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == EXTRACT:
            extract: click.Command = import_module("nvdash.cli.matrix_extract").command
            return extract
        return super().get_command(ctx, cmd_name)


@click.group(cls=MatrixGroup)
def command() -> None:
    """Ask, check and extend the support matrix."""


@command.command()
@support_flags
@answers_json
def verdict(**flags: Any) -> Outcome:
    """One combination, as `check` answers it."""
    from nvdash.answers.check import check, exit_code

    answer = check(flags)
    return answer, exit_code(answer), lines


@command.command()
@support_flags
@STAGE
@answers_json
def timeline(stage: str | None, **flags: Any) -> Outcome:
    """One combination over every release: since when, until when."""
    from nvdash.answers import matrix

    return matrix.timeline(flags, stage), 0, timeline_lines


def timeline_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """One line per stretch."""
    rows = [("Releases", "Verdict", "Layer", "Backend", "Evidence")]
    for stretch in answer["stretches"]:
        last = f" to {stretch['last']}" if stretch["last"] != stretch["first"] else ""
        evidence = evidence_text(stretch["evidence"])
        named = (stretch["layer"] or "", stretch["backend"] or "")
        rows.append((f"{stretch['since']}{last}", _word(stretch["verdict"]), *named, evidence))
    yield from aligned(rows)
    yield f"later than {answer['newest_release']}: {_word('unknown')}"


@command.command()
@support_flags
@answers_json
def nearest(**flags: Any) -> Outcome:
    """The smallest change of one axis that runs."""
    from nvdash.answers import matrix

    answer = matrix.nearest(flags)
    return answer, 0 if answer["nearest"] else 1, nearest_lines


def nearest_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """One line per change."""
    yield from map(nearest_line, answer["nearest"])
    if not answer["nearest"]:
        yield "No single change of cache dtype, backend, release, weights or GPU is known to run."


@command.command()
@support_flags
@click.option("--rows", default="arch", show_default=True, help="An axis: arch, kv_cache_dtype, backend, release, …")
@click.option("--columns", default="kv_cache_dtype", show_default=True, help="Another axis.")
@STAGE
@answers_json
def pivot(rows: str, columns: str, stage: str | None, **flags: Any) -> Outcome:
    """A grid of verdicts over any two axes."""
    from nvdash.answers import matrix

    return matrix.pivot(flags, rows, columns, stage), 0, pivot_lines


def pivot_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Symbol and first release per cell; the longer axis runs down."""
    from nvdash.answers.words import VERDICTS

    down, across, cells = answer["rows"], answer["columns"], answer["cells"]
    if len(across["values"]) > len(down["values"]):
        down, across, cells = across, down, list(zip(*cells, strict=True))
    rows = [(down["axis"], *across["values"])]
    for name, line in zip(down["values"], cells, strict=True):
        rows.append((name, *(f"{VERDICTS[cell['verdict']].symbol} {cell['since'] or ''}" for cell in line)))
    yield from aligned(rows)
    yield "  ".join(str(word) for word in VERDICTS.values())


@command.command()
@support_flags
@click.option("--from", "before", required=True, help="The earlier release.")
@click.option("--to", "after", required=True, help="The later release.")
@click.option("--fleet", type=click.Path(path_type=Path), help="A YAML list of configurations.")
@answers_json
def diff(before: str, after: str, fleet: Path | None, **flags: Any) -> Outcome:
    """What changed between two releases."""
    from nvdash.answers import matrix

    if fleet is not None:
        answer = matrix.diff_fleet(fleet, before, after)
    else:
        flags = {**flags, "kv_cache_dtype": None if flags["kv_cache_dtype"] == "auto" else flags["kv_cache_dtype"]}
        answer = matrix.diff(flags, before, after)
    is_worse = answer["counts"]["lost"] or answer["counts"]["new_trap"]
    return answer, 3 if answer["unread"] else int(bool(is_worse)), diff_lines


def diff_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Counts, then one line per change."""
    question, counts = answer["question"], answer["counts"]
    if question["from"] == question["to"]:
        yield "Same release on both sides."
        return
    for release in answer["unread"]:
        yield f"{release} was not read: its side is unknown."
    words = {"gained": "↑ {} gained", "lost": "↓ {} lost", "new_trap": "▲ {} new traps"}
    words |= {"changed": "· {} otherwise changed", "unchanged": "{} unchanged"}
    yield "  ".join(text.format(counts[kind]) for kind, text in words.items())
    if not answer["changes"]:
        yield f"Nothing changed between {question['from']} and {question['to']} for this configuration."
        return
    rows = [("GPU", "KV cache", "Head layout", "From", "To", "Layer", "Evidence")]
    for row in answer["changes"]:
        named = (row["arch"], row["kv_cache_dtype"], row["head_layout"] or "")
        verdicts = (_word(row["from"]), _word(row["to"]), row["layer"] or "")
        rows.append((*named, *verdicts, evidence_text(row["evidence"])))
    yield from aligned(rows)


@command.command()
@FRAMEWORK
@click.option("--release", required=True, help="Exactly as the framework writes it.")
@answers_json
def facts(framework: str, release: str) -> Outcome:
    """What the source of one release declares."""
    from nvdash.answers import matrix

    return matrix.facts(framework, release), 0, fact_lines


def fact_lines(answer: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """One line per fact."""
    for row in answer:
        yield f"{row['fact']}: {row['value']}  [{row['path']}:{row['line'] or '?'}]"


@command.command()
@click.option("--framework", "frameworks", multiple=True, help="Only these; all by default.")
@answers_json
def lint(frameworks: tuple[str, ...]) -> Outcome:
    """Check every statement."""
    from nvdash.answers import matrix

    answer = matrix.lint(frameworks)
    return answer, int(bool(answer["findings"])), lint_lines


def lint_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """One line per finding, then the counts."""
    for finding in answer["findings"]:
        yield f"{finding['where']}: {finding['message']} [{finding['check']}]"
    counts = ", ".join(f"{count} of {name}" for name, count in answer["statements"].items())
    yield f"{len(answer['findings'])} findings by {len(answer['checks'])} checks over {counts}"


@command.command()
@click.option("--cells", type=click.Path(path_type=Path), help="A CSV of answers, instead of asking an installed vLLM.")
@click.option("--docs", type=click.Path(path_type=Path), help="A release's own docs/design/attention_backends.md.")
@click.option("--release", help="The release that wrote the file.")
@answers_json
def drift(cells: Path | None, docs: Path | None, release: str | None) -> Outcome:
    """Ask the vLLM under NVDASH_PYTHON_VLLM, or a file of its answers, and list where it disagrees."""
    from nvdash.answers import matrix

    answer = matrix.drift(cells, release, docs)
    return answer, int(bool(answer["disagreements"])), drift_lines


def drift_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """Counts, then one line per disagreement."""
    different = len(answer["disagreements"])
    yield f"{answer['compared']} cells of vLLM {answer['question']['release']} compared, {different} differ"
    rows = [("Backend", "GPU", "KV cache", "Head size", "Engine", "Matrix", "Engine's reasons")]
    for row in answer["disagreements"]:
        engine = "accepts" if row["engine_accepts"] else "refuses"
        cell = (row["backend"], row["arch"], row["kv_cache_dtype"], str(row["head_size"]))
        rows.append((*cell, engine, row["matrix"], row["engine_reasons"]))
    if answer["disagreements"]:
        yield from aligned(rows)
    missing = ", ".join(f"{name} ({count})" for name, count in answer["without_rule"].items())
    yield f"cells without a rule, by backend: {missing or 'none'}"


@command.command()
@click.argument("report", type=click.Path(path_type=Path))
@answers_json
def propose(report: Path) -> Outcome:
    """Write the statements that a smoke report supports, for review."""
    from nvdash.answers import matrix

    answer = matrix.propose(report)
    return answer, 0 if answer["observations"] else 1, propose_lines


def propose_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """The patch, ready for the named file, or why there is none."""
    if answer["reason"]:
        yield f"# {answer['reason']}"
        return
    yield f"# for {answer['file']}"
    yield answer["patch"]


def _word(verdict: str) -> str:
    from nvdash.answers.words import VERDICTS

    return str(VERDICTS[verdict])
