"""The app as a reader meets it, without a browser."""

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture
def app(_private_store: None) -> AppTest:
    """The dashboard from its front door over an empty store; call `.run()` after filling `query_params`."""
    st.cache_data.clear()  # answers of another test's store
    return AppTest.from_file(str(APP), default_timeout=120)
