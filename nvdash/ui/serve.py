"""Starts the dashboard's server: `python -m nvdash.ui.serve [streamlit options]`.

Until some visitor has run the script once, Streamlit takes a folder named `pages` for its older page scheme and tells
the first one who opens a deep link that there is no such page. Our pages are named in `app.py`, so that scheme is off.
"""

import sys
from pathlib import Path

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

APP = Path(__file__).resolve().parents[2] / "app.py"


def main(options: list[str]) -> None:
    """Serve until stopped; the options are those of `streamlit run`."""
    PagesManager.uses_pages_directory = False
    sys.argv = ["streamlit", "run", str(APP), *options]
    cli.main()


if __name__ == "__main__":
    main(sys.argv[1:])
