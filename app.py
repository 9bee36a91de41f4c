"""The frame around every page: title, navigation, shared selectors."""

from contextlib import suppress

import streamlit as st

from nvdash.ui import components, selection

PAGES = [
    st.Page("pages/explore/overview.py", title="Overview", icon=":material/dashboard:", default=True),
    st.Page("pages/explore/matrix.py", title="Support matrix", icon=":material/grid_on:"),
    st.Page("pages/explore/memory.py", title="Memory", icon=":material/memory:"),
    st.Page("pages/explore/tradeoffs.py", title="Trade-offs", icon=":material/balance:"),
    st.Page("pages/lab/smoke.py", title="Smoke tests", icon=":material/science:"),
    st.Page("pages/lab/submit.py", title="Submit results", icon=":material/upload_file:"),
]

st.set_page_config(page_title="nvdash", page_icon="🧮", layout="wide")
page = st.navigation({"": PAGES}, position="top")


def configuration() -> None:
    """Draw the selectors that every page shares, and hand their values to it."""
    with st.sidebar:
        selection.remember_digest()
        selection.remember_names()
        selection.remember(selection.selectors())


with suppress(components.Ended):
    components.asking(configuration)
    components.broken_facts()
    components.asking(page.run)
