"""What a reader sees of a page, and how one gets there."""

from pathlib import Path

import pandas as pd
from streamlit.testing.v1 import AppTest

PAGES = {
    "Overview": "pages/explore/overview.py",
    "Support matrix": "pages/explore/matrix.py",
    "Memory": "pages/explore/memory.py",
    "Trade-offs": "pages/explore/tradeoffs.py",
    "Smoke tests": "pages/lab/smoke.py",
    "Submit results": "pages/lab/submit.py",
}
SEED = Path(__file__).parents[2] / "data" / "seed"
WORDS = ("title", "header", "subheader", "markdown", "caption", "success", "info", "warning", "error", "code")


def visit(app: AppTest, page: str, **link: str) -> AppTest:
    """Open a page by its name through a link, from the front door."""
    for name, value in link.items():
        app.query_params[name] = value
    app.run()
    return app.switch_page(PAGES[page]).run()


def text(app: AppTest) -> str:
    """Every word on the page, tables included."""
    said = [str(element.value) for kind in WORDS for element in getattr(app, kind)]
    return "\n".join([*said, *(table.value.to_csv(index=False) for table in app.table)])


def table(app: AppTest, *columns: str) -> pd.DataFrame:
    """The first table that has all of these columns."""
    found = [item.value for item in app.table if set(columns) <= set(item.value.columns)]
    assert found, f"no table with {columns}; there are {[list(item.value.columns) for item in app.table]}"
    return found[0]


def fixed_line(app: AppTest) -> str:
    """The grey line that repeats the configuration and names the matrix digest."""
    return next(str(line.value) for line in app.caption if " · matrix " in line.value)


def chart_alts(app: AppTest) -> list[str]:
    """The text alternative of every chart."""
    return [str(chart.proto.alt) for chart in app.get("vega_lite_chart")]


def press(app: AppTest, label: str) -> AppTest:
    """Press the button with this label."""
    return next(button for button in app.button if button.label == label).click().run()


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    """Give files to the upload box of the Submit page."""
    typed = [(name, content, "application/octet-stream") for name, content in files]
    return app.file_uploader[0].set_value(typed).run()


def seed(name: str) -> tuple[str, bytes]:
    """One of our own result files, as a browser would send it."""
    return name, (SEED / name).read_bytes()


def start_log(tokens: int) -> str:
    """A start-up log as vLLM 0.11 words it: 20 GiB for the cache of Llama-3.1-8B, and the tokens that it prints."""
    return f"""\
INFO 11-20 10:00:00 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: \
model='meta-llama/Llama-3.1-8B-Instruct', max_seq_len=8192, tensor_parallel_size=1, kv_cache_dtype=auto
INFO 11-20 10:00:09 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 5.1 seconds
INFO 11-20 10:00:19 [gpu_worker.py:298] Available KV cache memory: 20.00 GiB
INFO 11-20 10:00:19 [kv_cache_utils.py:1087] GPU KV cache size: {tokens:,} tokens
INFO 11-20 10:00:19 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: {tokens / 8192:.2f}x
"""
