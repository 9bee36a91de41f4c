"""Trade-offs: what each precision cost or gained, compared only where the controls match."""

import streamlit as st

from nvdash.ui import components, selection, tradeoff_parts

chosen = selection.current()
top = st.container()
source = st.segmented_control(
    "Source",
    tradeoff_parts.SOURCES,
    default=tradeoff_parts.SOURCES[0],
    required=True,
    key=tradeoff_parts.SOURCE,
    bind="query-params",
    label_visibility="collapsed",
)

title, fixed = "Trade-offs", components.fixed_line(chosen)
with components.titled(title, fixed, top):
    if source == "Both, side by side":
        left, right = st.columns(2, gap="large")
        with left:
            rows = tradeoff_parts.stored(chosen)
        with right:
            rows += tradeoff_parts.published(chosen)
    elif source == "Published":
        rows = tradeoff_parts.published(chosen)
    else:
        rows = tradeoff_parts.stored(chosen)
        tradeoff_parts.plan(chosen)
with top:
    components.header(title, fixed, components.exporter("tradeoffs", rows))
