"""What the reader has chosen; the one module that touches `st.session_state`.

Every selector is bound to the URL, so a view is a link. A link whose value no
catalogue knows gets a notice; it never becomes another model in silence.
"""

import shlex
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from nvdash.errors import did_you_mean
from nvdash.ui import cached

MODEL, GPU, COUNT, TP = "model", "gpu", "count", "tp"
FRAMEWORK, RELEASE, BACKEND = "framework", "release", "backend"
WEIGHTS, KV, CONTEXT, REQUESTS = "weights", "kv", "context", "requests"
SELECTORS = (MODEL, GPU, COUNT, TP, FRAMEWORK, RELEASE, WEIGHTS, KV, BACKEND, CONTEXT, REQUESTS)
DEFAULTS: dict[str, Any] = {
    MODEL: "meta-llama/Llama-3.1-8B-Instruct",
    GPU: "rtx-5090",
    COUNT: 1,
    TP: 1,
    FRAMEWORK: "vllm",
    WEIGHTS: "bf16",
    KV: "nvfp4",
    BACKEND: "auto",
    CONTEXT: 32_768,
    REQUESTS: 1,
}
CONTEXTS = [1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576]
COUNTS = [1, 2, 4, 8, 16]
DIGEST = "matrix"
NOTICES = "_notices"
OF_PAGES = ("cell", "matrix_", "memory_", "tradeoffs_", "published_", "smoke_", "compare_", "embed")
"""How the parameters begin that pages read for themselves; `embed` is Streamlit's own."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One configuration as the selectors say it; hashable, so that answers cache by it."""

    model: str
    gpu: str
    count: int
    tp: int
    framework: str
    release: str
    weights: str
    kv: str
    backend: str
    context: int
    requests: int

    def question(self, **other: Any) -> dict[str, Any]:
        """The selection in the words of the command line; `other` replaces or adds flags."""
        return {
            "framework": self.framework,
            "release": self.release,
            "gpu": self.gpu,
            "model": self.model,
            "weights": self.weights,
            "kv_cache_dtype": self.kv,
            "backend": None if self.backend == "auto" else self.backend,
            "tp": self.tp,
            "pp": self.count // self.tp,
            **other,
        }

    def memory_question(self, **other: Any) -> dict[str, Any]:
        """The same with the asked context and requests."""
        asked = {"max_model_len": self.context, "context": self.context, "concurrency": self.requests}
        return self.question(**{**asked, **other})

    def link(self, **changed: Any) -> dict[str, str]:
        """URL parameters of this selection; defaults are written out so that a link keeps its meaning."""
        values = {**asdict(self), **changed, DIGEST: cached.matrix_digest()}
        return {key: str(value) for key, value in values.items()}


def option(key: str, label: str, options: list[Any], **more: Any) -> Any:
    """One bound selector; a value from a link that is no option is named in a notice first.

    The default is the widget's own: going back in the browser puts a parameter that left the URL to that.
    """
    default = DEFAULTS[key] if DEFAULTS.get(key) in options else options[0]
    asked = st.query_params.get(key)
    if key not in st.session_state:
        if asked is not None and asked not in map(str, options):
            notice(f"The link asks for {label.lower()} “{asked[:80]}”, which is not known here. Shown: {default}.")
    elif st.session_state[key] not in options:
        st.session_state[key] = default
    return st.selectbox(label, options, options.index(default), key=key, bind="query-params", **more)


def notice(text: str) -> None:
    """Remember something about the incoming link for every page of this session."""
    found = st.session_state.setdefault(NOTICES, [])
    if text not in found:
        found.append(text)


def notices() -> list[str]:
    """What the incoming link asked for and did not get."""
    return list(st.session_state.get(NOTICES, []))


def dismiss() -> None:
    """Forget the notices."""
    st.session_state.pop(NOTICES, None)


def remember_names() -> None:
    """Note once each what the link names and no page reads; a misspelt selector must not pass in silence."""
    seen: set[str] = st.session_state.setdefault("_unread", set())
    for name in set(st.query_params) - {*SELECTORS, DIGEST} - seen:
        if not name.startswith(OF_PAGES):
            seen.add(name)
            hint = did_you_mean(name, SELECTORS)
            notice(f"The link says {name[:40]}={st.query_params[name][:60]}, which no page reads. {hint}".strip())


def remember_digest() -> None:
    """Note once when the incoming link was made with other facts; links that we hand out name today's digest."""
    asked, here = st.query_params.get(DIGEST), cached.matrix_digest()
    if asked and asked != here and "_then" not in st.session_state:
        st.session_state["_then"] = asked[:12]
        notice(f"This link was made with matrix {asked[:12]}; the facts are now {here}. The answers below are today's.")


def address() -> str:
    """The whole link of this view, defaults written out, to copy."""
    page = str(st.context.url or "").split("?")[0]
    values = {**current().link(), **{key: st.query_params[key] for key in st.query_params if key not in SELECTORS}}
    return f"{page}?{urlencode(values)}"


def digest_then() -> str | None:
    """The digest that the incoming link was made with, when it is not today's."""
    found: str | None = st.session_state.get("_then")
    return found


def reset() -> None:
    """Put every selector back to its default; a bound parameter leaves the URL with its widget's value."""
    newest = cached.releases(DEFAULTS[FRAMEWORK])[0]
    for key, value in {**DEFAULTS, RELEASE: newest}.items():
        st.session_state[key] = value
    dismiss()


def selectors() -> Selection:
    """Draw the configuration in the sidebar and return it."""
    choices = cached.choices()
    st.subheader("Configuration")
    model = option(MODEL, "Model", list(choices.models))
    gpu = option(GPU, "GPU", list(choices.gpus), help="Product ids; the page title names the product.")
    left, right = st.columns(2)
    with left:
        count = option(COUNT, "GPU count", COUNTS, help="GPUs of one replica: tensor parallel × pipeline parallel.")
    with right:
        tp = option(TP, "TP", [n for n in COUNTS if n <= count], help="Tensor parallel size; the rest is pipeline.")
    left, right = st.columns(2)
    with left:
        framework = option(FRAMEWORK, "Framework", list(choices.frameworks))
    with right:
        release = option(RELEASE, "Version", list(cached.releases(framework)))
    left, right = st.columns(2)
    with left:
        weights = option(WEIGHTS, "Weights", list(choices.weights))
    with right:
        kv = option(KV, "KV cache", list(cached.kv_cache_dtypes(framework)))
    names = ["auto", *(name for name in cached.backends(framework, release) if name != "auto")]
    why = "auto lets the release choose, by its own priority list."
    backend = option(BACKEND, "Attention backend", names, help=why)
    left, right = st.columns(2)
    with left:
        context = option(CONTEXT, "Context", CONTEXTS, help="Tokens per request, prompt and answer together.")
    with right:
        requests = st.number_input(
            "Requests",
            1,
            100_000,
            1,
            key=REQUESTS,
            bind="query-params",
            help="Requests that should be in the cache at once.",
        )
    st.button("Reset to defaults", icon=":material/restart_alt:", type="tertiary", on_click=reset)
    return Selection(model, gpu, count, tp, framework, release, weights, kv, backend, context, int(requests))


def remember(selection: Selection) -> None:
    """Hand the frame's selection to the page that runs after it."""
    st.session_state["_selection"] = selection


def current() -> Selection:
    """The configuration that the frame drew in this run."""
    selection: Selection = st.session_state["_selection"]
    return selection


def recall(key: str, default: Any = None) -> Any:
    """A page's own value that must outlive a rerun (never a widget's)."""
    return st.session_state.get(f"_page_{key}", default)


def keep(key: str, value: Any) -> None:
    """Remember a page's own value for this session."""
    st.session_state[f"_page_{key}"] = value


def begin_with(key: str, values: list[str]) -> None:
    """The values a widget has before anybody touched it."""
    st.session_state.setdefault(key, values)


def choose(key: str, values: list[str]) -> None:
    """Give a widget these values."""
    st.session_state[key] = values


def swap(first: str, second: str) -> None:
    """Exchange the values of two widgets."""
    state = st.session_state
    state[first], state[second] = state[second], state[first]


def swap_equal_axes(changed: str, other: str, fallback: str, other_fallback: str) -> None:
    """After a choice that made two axes equal, give the other one a value that differs."""
    state = st.session_state
    if state[changed] == state[other]:
        state[other] = other_fallback if state[changed] != other_fallback else fallback


def use(changed: dict[str, str]) -> None:
    """Take over an axis value as the configuration; a capability becomes its first product."""
    for key, value in changed.items():
        st.session_state[key] = cached.product_of(value) if key == GPU else value


def changed_question(chosen: Selection, changed: dict[str, str]) -> dict[str, Any]:
    """The configuration's question with some of its axes replaced."""
    words = {GPU: "gpu", KV: "kv_cache_dtype", BACKEND: "backend", WEIGHTS: "weights", RELEASE: "release"}
    other: dict[str, Any] = {words[key]: value for key, value in changed.items()}
    if other.get("backend") == "auto":
        other["backend"] = None
    return chosen.question(**other)


def command(name: str, question: dict[str, Any]) -> str:
    """The same question on the command line."""
    flags = [f"--{key.replace('_', '-')} {quoted(value)}" for key, value in question.items() if value is not None]
    return " ".join([f"./run {name}", *flags])


def quoted(value: Any) -> str:
    """A flag's value as a shell reads it."""
    return shlex.quote(str(value))


def linked_cell(key: str, positions: dict[str, tuple[int, str]]) -> tuple[int, str] | None:
    """The cell an incoming link opens, read once per grid; an unknown one gets a notice."""
    seen: dict[str, tuple[int, str] | None] = st.session_state.setdefault("_cells", {})
    if key not in seen:
        asked = st.query_params.get("cell")
        seen[key] = positions.get(asked) if asked else None
        if asked and seen[key] is None:
            notice(f"The link opens the cell “{asked[:60]}”, which this grid does not have.")
    return seen[key]


def link_cell(cell: str | None) -> None:
    """Make the open cell part of the link, or take it out."""
    if cell is None:
        st.query_params.pop("cell", None)
    elif st.query_params.get("cell") != cell:
        st.query_params["cell"] = cell


def linked(prefix: str) -> bool:
    """Whether the link carries a parameter that starts so."""
    return any(key.startswith(prefix) for key in st.query_params)


def second(chosen: Selection, prefix: str) -> Selection:
    """Another configuration: the same but for what its own bound selectors change."""
    same = "same"
    fields = {
        GPU: cached.choices().gpus,
        RELEASE: cached.releases(chosen.framework),
        WEIGHTS: cached.choices().weights,
        KV: cached.kv_cache_dtypes(chosen.framework),
        TP: tuple(map(str, COUNTS)),
    }
    changed: dict[str, Any] = {}
    for column, (key, options) in zip(st.columns(len(fields)), fields.items(), strict=True):
        label = {GPU: "GPU", RELEASE: "Version", WEIGHTS: "Weights", KV: "KV cache", TP: "TP"}[key]
        value = column.selectbox(f"Other {label}", [same, *options], key=f"{prefix}_{key}", bind="query-params")
        if value != same:
            changed[key] = int(value) if key == TP else value
    if TP in changed:
        changed[COUNT] = max(chosen.count, changed[TP])
    return replace(chosen, **changed)


def differences(first: Selection, other: Selection) -> dict[str, tuple[Any, Any]]:
    """The fields in which two configurations differ."""
    left, right = asdict(first), asdict(other)
    return {key: (left[key], right[key]) for key in left if left[key] != right[key]}
