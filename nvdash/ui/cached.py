"""Answers kept by value: the question, the matrix digest and the store's revision are the key."""

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from nvdash.answers import choices as choice
from nvdash.answers.words import FRAMEWORKS
from nvdash.errors import NvdashError
from nvdash.readers.matrix import matrix_digest as read_digest

Answer = dict[str, Any]


@st.cache_data(ttl=1, max_entries=1, show_spinner=False)
def matrix_digest() -> str:
    """The digest of the facts that every answer on the page rests on; the files are looked at once a second."""
    return read_digest()


def key_of(question: Mapping[str, Any]) -> str:
    """A question as text, the same for equal questions."""
    return json.dumps(question, sort_keys=True, default=str)


def store_revision() -> int:
    """Grows with every change of the store; an answer that read the store is stale after it."""
    from nvdash.store.runs import revision

    return revision()


def choices() -> choice.Choices:
    """Models, GPUs, frameworks and weight formats."""
    return _choices(matrix_digest())


@st.cache_data(max_entries=4, show_spinner=False)
def _choices(digest: str) -> choice.Choices:
    return choice.choices()


def broken() -> dict[str, NvdashError]:
    """Frameworks whose facts do not read."""
    return _broken(matrix_digest())


@st.cache_resource(max_entries=4, show_spinner=False)
def _broken(digest: str) -> dict[str, NvdashError]:
    return choice.broken()


@st.cache_data(max_entries=32, show_spinner=False)
def _options(kind: str, framework: str, release: str, digest: str) -> tuple[str, ...]:
    if kind == "releases":
        return choice.releases(framework)
    if kind == "kv":
        return choice.kv_cache_dtypes(framework)
    return choice.backends(framework, release)


def releases(framework: str) -> tuple[str, ...]:
    """Releases of a framework, newest first."""
    return _options("releases", framework, "", matrix_digest())


def kv_cache_dtypes(framework: str) -> tuple[str, ...]:
    """Cache words of a framework over all its releases."""
    return _options("kv", framework, "", matrix_digest())


def backends(framework: str, release: str) -> tuple[str, ...]:
    """Attention backends that one release names."""
    return _options("backends", framework, release, matrix_digest())


def framework_name(framework: str) -> str:
    """How the framework writes its own name."""
    return FRAMEWORKS.get(framework, framework)


def gpu_label(gpu: str) -> str:
    """A GPU with product name and capability."""
    return choice.gpu_label(gpu)


def products_of(arch: str) -> str:
    """Products of a capability."""
    return choice.products_of(arch)


def ask(name: str, question: Mapping[str, Any], **more: Any) -> Answer:
    """One answer by its name; cached until the facts or the store change."""
    return _ask(name, key_of(question), key_of(more), matrix_digest(), store_revision())


def ask_fresh(name: str, *args: Any, **more: Any) -> Any:
    """An answer that must not be kept: it reads files or changes the store."""
    from nvdash.ui.asking import ASK

    return ASK[name](*args, **more)


@st.cache_data(max_entries=512, show_spinner=False)
def _ask(name: str, question_key: str, more_key: str, digest: str, revision: int) -> Answer:
    from nvdash.ui.asking import ASK

    answer: Answer = ASK[name](json.loads(question_key), **json.loads(more_key))
    return answer


def product_of(arch: str) -> str:
    """The catalogue's first product of a capability; a product stands for itself."""
    return choice.product_of(arch)


def arch_of(gpu: str) -> str:
    """The capability of a GPU."""
    return choice.arch_of(gpu)


def arch_names() -> tuple[str, ...]:
    """Every architecture that the matrix names."""
    return choice.arch_names()


def safe_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV without cells that a spreadsheet runs."""
    from nvdash.answers.taking import csv_text

    return csv_text(rows)


@st.cache_data(max_entries=64, show_spinner=False)
def _field_options(field: str, digest: str) -> tuple[str, ...]:
    from nvdash.answers.taking import field_options

    return field_options(field)


def field_options(field: str) -> tuple[str, ...]:
    """The usual answers to one question of the submission form."""
    return _field_options(field, matrix_digest())


def column_targets() -> dict[str, str]:
    """What a column of a table can be mapped to, and how a form calls it."""
    return dict(ask_fresh("column_targets"))


def systems() -> list[dict[str, Any]]:
    """Which models and GPUs have runs in the store."""
    return _systems(store_revision())


@st.cache_data(max_entries=4, show_spinner=False)
def _systems(revision: int) -> list[dict[str, Any]]:
    from nvdash.answers.results import systems

    return systems()


def as_json(value: Any) -> str:
    """An answer as text to keep."""
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)


@st.cache_data(ttl=30, max_entries=1, show_spinner=False)
def preflight() -> Answer:
    """What this machine has for smoke tests; looked at again after half a minute."""
    return dict(ask_fresh("smoke_preflight"))


def smoke_cases(question: Mapping[str, Any]) -> list[Answer]:
    """The cases for a configuration, with what is expected of each."""
    return _smoke_cases(key_of(question), matrix_digest(), store_revision())


@st.cache_data(max_entries=64, show_spinner=False)
def _smoke_cases(question_key: str, digest: str, revision: int) -> list[Answer]:
    return list(ask_fresh("smoke_cases", json.loads(question_key), preflight()))


def smoke_running() -> str | None:
    """The job that runs now, for this session or another."""
    running: str | None = ask_fresh("smoke_running")
    return running


def smoke_history() -> list[Answer]:
    """Stored smoke reports, newest first."""
    return _smoke_history(store_revision())


@st.cache_data(max_entries=4, show_spinner=False)
def _smoke_history(revision: int) -> list[Answer]:
    return list(ask_fresh("smoke_history"))


def then(question: Mapping[str, Any], digest: str) -> Answer | None:
    """What an older matrix said of a question."""
    return _then(key_of(question), digest)


@st.cache_data(max_entries=32, show_spinner=False)
def _then(question_key: str, digest: str) -> Answer | None:
    answer: Answer | None = ask_fresh("then", json.loads(question_key), digest)
    return answer
