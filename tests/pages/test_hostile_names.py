"""Names that strangers upload are text on every page, never a link, a picture or a colour."""

import json

import pytest

from nvdash.answers import submission
from tests.pages.reading import PAGES, SEED, text, visit

LINK = "[click](http://x.example)"
TEXTS = ("framework", "version", "weight_format", "kv_cache_dtype_requested", "kv_cache_dtype_resolved")
MORE = ("attention_backend", "prefix_cache_state", "workload", "dataset", "flashinfer_version", "quantization")


KNOWN = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "rtx-5090"}
"""What the sidebar shows at first, so that pages find these runs."""


def submit(folder, duration, typed):
    path = folder / f"{duration}.json"
    path.write_text(json.dumps({**json.loads((SEED / "bench_serve_bf16.json").read_text()), "duration": duration}))
    submission.submit([path], typed)


@pytest.mark.parametrize("page", PAGES)
def test_an_uploaded_link_is_no_link(app, page, tmp_path):
    hostile = dict.fromkeys((*TEXTS, *MORE), LINK)
    submit(tmp_path, 1.5, {**hostile, **KNOWN})
    submit(tmp_path, 2.5, {**hostile, **KNOWN, "kv_cache_dtype_resolved": "nvfp4", "weight_format": "nvfp4"})
    submit(tmp_path, 3.5, {**hostile, "model": LINK, "gpu": LINK})
    visit(app, page)
    assert not app.exception
    assert LINK not in text(app)
    if page in ("Submit results", "Trade-offs"):
        assert "click" in text(app)
