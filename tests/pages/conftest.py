"""The app as a reader meets it, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[2] / "app.py"


@pytest.fixture
def app() -> AppTest:
    """The dashboard from its front door; call `.run()` after filling `query_params`."""
    return AppTest.from_file(str(APP), default_timeout=120)


def visible(app: AppTest) -> str:
    """All text that a reader sees on the page, in order of kind."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "success", "info", "warning", "error", "code")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind))
