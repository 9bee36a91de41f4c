"""The answers that pages ask for, by name; each is imported when it is first asked."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

PLACES = {
    "overview": ("nvdash.answers.overview", "overview"),
    "check": ("nvdash.answers.check", "check"),
    "then": ("nvdash.answers.then", "then"),
    "pivot": ("nvdash.answers.matrix", "pivot"),
    "timeline": ("nvdash.answers.matrix", "timeline"),
    "diff": ("nvdash.answers.matrix", "diff"),
    "diff_fleet": ("nvdash.answers.matrix", "diff_fleet"),
    "memory": ("nvdash.answers.memory", "memory"),
    "memory_views": ("nvdash.answers.memory_views", "memory_views"),
    "compare": ("nvdash.answers.comparison", "compare"),
    "pareto": ("nvdash.answers.comparison", "pareto"),
    "plan": ("nvdash.answers.plan", "plan"),
    "smoke_preflight": ("nvdash.answers.smoke", "preflight"),
    "smoke_cases": ("nvdash.answers.smoke", "cases"),
    "smoke_start": ("nvdash.answers.smoke", "start"),
    "smoke_running": ("nvdash.answers.smoke", "running"),
    "smoke_poll": ("nvdash.answers.smoke", "poll"),
    "smoke_cancel": ("nvdash.answers.smoke", "cancel"),
    "smoke_command": ("nvdash.answers.smoke", "command"),
    "smoke_emit": ("nvdash.answers.smoke", "emitted"),
    "smoke_history": ("nvdash.answers.results", "smoke_list"),
    "published": ("nvdash.answers.results", "published"),
    "runs": ("nvdash.answers.results", "runs"),
    "preview": ("nvdash.answers.submission", "preview"),
    "column_targets": ("nvdash.answers.mapping", "targets"),
    "submit": ("nvdash.answers.submission", "submit"),
    "undo": ("nvdash.answers.submission", "undo"),
}


def _call(place: tuple[str, str], *args: Any, **named: Any) -> Any:
    module, function = place
    return getattr(import_module(module), function)(*args, **named)


ASK: dict[str, Callable[..., Any]] = {name: partial(_call, place) for name, place in PLACES.items()}
