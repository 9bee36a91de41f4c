"""Support matrix: who accepts what, since which release, and where the source says so."""

import streamlit as st

from nvdash.ui import components, matrix_views, selection

VIEWS = {"Grid": matrix_views.grid, "Timeline": matrix_views.timeline, "Changes": matrix_views.changes}

chosen = selection.current()
top = st.container()
view = st.segmented_control(
    "View",
    list(VIEWS),
    default="Grid",
    required=True,
    key="matrix_view",
    bind="query-params",
    label_visibility="collapsed",
)
title, fixed = "Support matrix", components.fixed_line(chosen)
with components.titled(title, fixed, top):
    shown = VIEWS[view or "Grid"](chosen)
with top:
    components.header(title, fixed, components.exporter("matrix", shown))
