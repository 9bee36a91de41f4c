"""Smoke tests: what really ran, in which format, with which kernels."""

import streamlit as st

from nvdash.ui import components, selection, smoke_parts

chosen = selection.current()
components.header(
    "Smoke tests",
    f"{components.fixed_line(chosen)} · a small cache is really allocated, one prefill and eight decode steps run, "
    "each case in its own process",
)
view = st.segmented_control(
    "View",
    ["Run", "Last result", "History"],
    default="Run",
    required=True,
    key="smoke_view",
    bind="query-params",
    label_visibility="collapsed",
)
if view == "Last result":
    smoke_parts.last()
elif view == "History":
    smoke_parts.history()
else:
    smoke_parts.run(chosen)
if view != "Last result":
    components.command(selection.command("smoke", chosen.question(engine="reference", pp=None)))
