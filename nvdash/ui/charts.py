"""Charts that say one thing each; the finding stands in words beside them.

Status colours belong to verdicts, dtype marks to formats; neither is used for the other.
A finished chart is kept by its data and the theme: to build one takes longer than the rest of a page.
"""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.dataframe_util import convert_anything_to_arrow_bytes

STATUS = {
    "light": {
        "green": ("#176B30", "#E3F3E7"),
        "blue": ("#0A559C", "#E5EFFA"),
        "yellow": ("#7A5200", "#FFF3D6"),
        "orange": ("#96390A", "#FDE9DD"),
        "red": ("#A8201A", "#FCE7E5"),
        "gray": ("#535B64", "#EEF0F2"),
    },
    "dark": {
        "green": ("#79D695", "#12301D"),
        "blue": ("#86BDF7", "#11283F"),
        "yellow": ("#E8BC55", "#33290E"),
        "orange": ("#F5A070", "#3B2012"),
        "red": ("#FF958C", "#3D1715"),
        "gray": ("#A3ADB7", "#222A31"),
    },
}
DTYPE = {
    "light": {"16-bit": "#535B64", "FP8": "#0A559C", "NVFP4": "#0B6E6E"},
    "dark": {"16-bit": "#A3ADB7", "FP8": "#86BDF7", "NVFP4": "#3FB8B0"},
}
DASH = {"16-bit": [2, 2], "FP8": [6, 3], "NVFP4": [1, 0]}
SHAPE = {"16-bit": "square", "FP8": "diamond", "NVFP4": "circle"}


def theme() -> str:
    """`light` or `dark`, as the reader's browser shows the page."""
    return "dark" if st.context.theme.type == "dark" else "light"


def text_colour() -> str:
    """Axis and label text with at least 4.5:1 on the page."""
    return STATUS[theme()]["gray"][0]


Spec = dict[str, Any]
"""A finished Vega-Lite chart; its data are packed as Streamlit sends them."""
_BUILDERS: dict[str, Callable[..., alt.TopLevelMixin]] = {}
alt.theme.enable("none")


def kept(build: Callable[..., Any]) -> Callable[..., Spec]:
    """Let a function that builds a chart answer with the finished one, kept by its arguments and the theme."""
    _BUILDERS[build.__name__] = build

    @wraps(build)
    def finished(*arguments: Any) -> Spec:
        return _finished(build.__name__, theme(), json.dumps(arguments))

    return finished


@st.cache_data(max_entries=256, show_spinner=False)
def _finished(name: str, mode: str, arguments: str) -> Spec:
    muted = text_colour()
    chart = _BUILDERS[name](*json.loads(arguments)).configure_axis(
        labelColor=muted, titleColor=muted, gridOpacity=0.35, labelFontSize=12, titleFontSize=12
    )
    spec: Spec = chart.configure_view(strokeWidth=0).to_dict()
    packed = {name: convert_anything_to_arrow_bytes(rows) for name, rows in spec["datasets"].items()}
    return {**spec, "datasets": packed}


def shown(spec: Spec, alt_text: str, key: str) -> None:
    """Draw a finished chart with a text alternative that names the finding."""
    st.vega_lite_chart(spec=spec, alt=alt_text, key=key)


@kept
def memory_steps(rows: list[dict[str, Any]]) -> Any:
    """Stepped bars from left to right: what each part of one GPU's memory takes, in GiB."""
    frame = pd.DataFrame(rows)
    fills = {"weights": 0, "runtime": 1, "cache": 2, "free": 3, "rest": 4}
    colours = {
        "light": ["#0A559C", "#535B64", "#0B6E6E", "#FFFFFF", "#E8ECF0"],
        "dark": ["#86BDF7", "#A3ADB7", "#3FB8B0", "#10151A", "#2C353D"],
    }[theme()]
    base = alt.Chart(frame).encode(y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=220)))
    bars = base.mark_bar(stroke=text_colour(), strokeWidth=0.8, height=18).encode(
        x=alt.X("start:Q", title="GiB on one GPU"),
        x2="end:Q",
        color=alt.Color("part:N", scale=alt.Scale(domain=list(fills), range=colours), legend=None),
        tooltip=["label", alt.Tooltip("size:Q", format=".2f", title="GiB"), "source"],
    )
    words = base.mark_text(align="left", dx=6, color=text_colour()).encode(x="end:Q", text="text:N")
    return (bars + words).properties(height=34 * len(frame) + 46)


@kept
def memory_growth(lines: list[dict[str, Any]], limit_gib: float, fixed_gib: float, now_tokens: int) -> Any:
    """One line per cache dtype from the fixed part up to the engine's limit; where it meets, the pool is full."""
    colours = DTYPE[theme()]
    points = [
        {"dtype": row["dtype"], "tokens": tokens, "gib": gib, "label": row["label"] if tokens else ""}
        for row in lines
        for tokens, gib in ((0, fixed_gib), (row["tokens"], limit_gib))
    ]
    frame = pd.DataFrame(points)
    domain = [row["dtype"] for row in lines]
    colour = alt.Color("dtype:N", scale=alt.Scale(domain=domain, range=[colours[d] for d in domain]), legend=None)
    dash = alt.StrokeDash("dtype:N", scale=alt.Scale(domain=domain, range=[DASH[d] for d in domain]), legend=None)
    shape = alt.Shape("dtype:N", scale=alt.Scale(domain=domain, range=[SHAPE[d] for d in domain]), legend=None)
    axis_x = alt.X("tokens:Q", title="Tokens in use over all requests", axis=alt.Axis(format="~s", tickCount=6))
    axis_y = alt.Y("gib:Q", title="GiB on one GPU", scale=alt.Scale(domain=[0, limit_gib * 1.15]))
    base = alt.Chart(frame)
    line = base.mark_line(strokeWidth=2.5).encode(x=axis_x, y=axis_y, color=colour, strokeDash=dash)
    ends = base.transform_filter("datum.tokens > 0")
    marks = ends.mark_point(size=90, filled=True, opacity=1).encode(
        x=axis_x, y=axis_y, color=colour, shape=shape, tooltip=[alt.Tooltip("label:N", title="Pool is full")]
    )
    labels = ends.mark_text(dy=-14, fontWeight="bold").encode(x=axis_x, y=axis_y, color=colour, text="dtype:N")
    rules = alt.Chart(pd.DataFrame({"gib": [limit_gib]})).mark_rule(strokeDash=[4, 4], color=STATUS[theme()]["red"][0])
    flat = (
        alt.Chart(pd.DataFrame({"low": [0.0], "high": [fixed_gib]}))
        .mark_rect(color=text_colour(), opacity=0.16)
        .encode(y="low:Q", y2="high:Q")
    )
    now = alt.Chart(pd.DataFrame({"tokens": [now_tokens]})).mark_rule(color=text_colour()).encode(x="tokens:Q")
    return alt.layer(flat, rules.encode(y="gib:Q"), line, marks, labels, now).properties(height=330)


@kept
def requests_grid(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    """How many requests fit at once, by weights/cache and context; the number is in the cell."""
    frame = pd.DataFrame(rows)
    dark = theme() == "dark"
    base = alt.Chart(frame).encode(
        x=alt.X("context:N", sort=None, title="context per request", axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("column:N", sort=columns, title="weights / cache"),
    )
    ramp = ["#182027", "#0F4F4F"] if dark else ["#EEF6F6", "#9CCFCF"]
    cells = base.mark_rect(stroke=STATUS[theme()]["gray"][1]).encode(
        color=alt.Color("rank:Q", scale=alt.Scale(range=ramp), legend=None),
        tooltip=["column", "context", alt.Tooltip("label:N", title="requests"), "verdict"],
    )
    words = base.mark_text(fontSize=12, color="#E6EAEE" if dark else "#0E1216").encode(text="label:N")
    return (cells + words).properties(height=max(220, 28 * len(columns) + 60))


@kept
def timeline(bars: list[dict[str, Any]], releases: list[str]) -> Any:
    """One bar per stretch of releases with the same answer; `start` and `end` index the releases."""
    palette = STATUS[theme()]
    frame = pd.DataFrame(bars)
    frame["line"] = [palette[c][0] for c in frame["colour"]]
    frame["fill"] = [palette[c][1] for c in frame["colour"]]
    names = "[" + ",".join(f"'{name}'" for name in releases) + "]"
    axis = alt.Axis(
        orient="top",
        values=list(range(len(releases))),
        labelExpr=f"{names}[datum.value]",
        grid=False,
        labelOverlap="greedy",
        labelAngle=-45 if len(releases) > 24 else 0,
    )
    y = alt.Y("row:N", sort=None, title=None)
    scale = alt.Scale(domain=[-0.5, len(releases) - 0.5], nice=False)
    base = alt.Chart(frame)
    box = base.mark_bar(height=22, cornerRadius=3, strokeWidth=1.3).encode(
        x=alt.X("left:Q", title="release", axis=axis, scale=scale),
        x2="right:Q",
        y=y,
        color=alt.Color("fill:N", scale=None),
        stroke=alt.Stroke("line:N", scale=None),
        tooltip=["row", "span", "label", "reason"],
    )
    roomy = alt.expr("(datum.right - datum.left) * width > 1900 ? datum.long : datum.symbol")
    words = base.mark_text(fontSize=11, fontWeight="bold", text=roomy).encode(
        x=alt.X("middle:Q", scale=scale), y=y, color=alt.Color("line:N", scale=None)
    )
    return (box + words).properties(height=32 * frame["row"].nunique() + 40)


@kept
def interaction(rows: list[dict[str, Any]], unit: str) -> Any:
    """Two lines, one per weight format, over the cache format: parallel lines mean that the effects add up."""
    frame = pd.DataFrame(rows)
    domain = sorted(frame["weights"].unique())
    pick = [DTYPE[theme()]["16-bit"], DTYPE[theme()]["NVFP4"]][: len(domain)]
    base = alt.Chart(frame).encode(
        x=alt.X("cache:N", title="KV cache", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=unit, scale=alt.Scale(zero=False)),
        color=alt.Color("weights:N", scale=alt.Scale(domain=domain, range=pick), legend=alt.Legend(orient="top")),
        shape=alt.Shape("weights:N", legend=None),
    )
    return (
        base.mark_line()
        + base.mark_point(size=80, filled=True)
        + base.mark_text(dy=-12).encode(text=alt.Text("value:Q", format=",.4~g"))
    ).properties(height=300)


@kept
def pareto(rows: list[dict[str, Any]], x_title: str, y_title: str, hollow: bool = False) -> Any:
    """A mark per run, the front as a named line; hollow marks are published, never on one axis with stored runs."""
    frame = pd.DataFrame(rows)
    teal = DTYPE[theme()]["NVFP4"]
    base = alt.Chart(frame).encode(
        x=alt.X("x:Q", title=f"{x_title}, more is better", scale=alt.Scale(zero=False, padding=24)),
        y=alt.Y("y:Q", title=f"{y_title}, more is better", scale=alt.Scale(zero=False, padding=16)),
    )
    marks = base.mark_point(
        filled=not hollow, shape="diamond" if hollow else "circle", size=90, color=teal, opacity=1
    ).encode(tooltip=["label", "x", "y"])
    best = base.transform_filter("datum.front")
    words = best.mark_text(align="left", dx=9, color=text_colour()).encode(text="label:N")
    return (best.mark_line(color=teal, opacity=0.6) + marks + words).properties(height=300)


@kept
def bars(rows: list[dict[str, Any]], label: str, value: str, text: str) -> Any:
    """Plain horizontal bars with their words at the end."""
    frame = pd.DataFrame(rows)
    base = alt.Chart(frame).encode(y=alt.Y(f"{label}:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)))
    bar = base.mark_bar(height=14, color=DTYPE[theme()]["NVFP4"]).encode(x=alt.X(f"{value}:Q", axis=None))
    words = base.mark_text(align="left", dx=6, color=text_colour()).encode(x=f"{value}:Q", text=f"{text}:N")
    return (bar + words).properties(height=28 * len(frame) + 20)
