"""How a command answers: text or one JSON value on stdout, everything else on stderr."""

import functools
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click

from nvdash.answers.envelope import SCHEMA_VERSION
from nvdash.errors import NvdashError, UsageError

Answer = dict[str, Any] | list[Any]
Outcome = tuple[Answer, int, Callable[[Any], Iterable[Any]]]
"""The answer, its exit code, and the function that turns it into lines (str or rich renderables)."""


def answers_json(function: Callable[..., Outcome]) -> Callable[..., None]:
    """Add `--json` to a command and turn its `Outcome` into output and an exit code."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead of text.")
    @functools.wraps(function)
    def command(as_json: bool, **options: Any) -> None:
        try:
            answer, code, lines = function(**options)
        except NvdashError as error:
            refuse(error, as_json)
        else:
            show(answer, lines, as_json)
            sys.exit(code)

    return command


def show(answer: Answer, lines: Callable[[Any], Iterable[Any]], as_json: bool) -> None:
    """Print the answer; rich is imported only when a line needs it."""
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
        return
    for line in lines(answer):
        if isinstance(line, str):
            click.echo(line)
        else:
            from rich.console import Console

            Console(soft_wrap=False).print(line)


def refuse(error: NvdashError, as_json: bool) -> None:
    """Say what was wrong on stderr (and as JSON when asked) and leave with the error's code."""
    if as_json:
        click.echo(error_object(error))
    click.echo(str(error), err=True)
    sys.exit(error.exit_code)


def error_object(error: NvdashError) -> str:
    """The JSON that stands in an answer's place."""
    return json.dumps({"schema": f"nvdash.error/{SCHEMA_VERSION}", "error": error.as_dict()}, ensure_ascii=False)


def usage_object(error: click.UsageError) -> str:
    """The same for a flag that click refuses before the command runs; click itself tells stderr."""
    path = error.ctx.command_path if error.ctx else "nvdash"
    hint = f"{path} --help lists them"
    return error_object(UsageError(path, "the flags and arguments of this command", error.format_message(), hint))
