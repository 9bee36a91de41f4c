"""A store of its own for every test, and runs in normal form to fill it."""

import pytest

from nvdash.store.adding import FileMark, NewRun
from nvdash.store.identity import run_id

FILE = FileMark("bench.json", "vllm-bench-serve", "ab" * 32, 1234)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The path of an empty store that NVDASH_STORE names."""
    path = tmp_path / "store.duckdb"
    monkeypatch.setenv("NVDASH_STORE", str(path))
    return path


@pytest.fixture
def new_run():
    """A function from measured values to a run that can be stored."""

    def make(quality=(), kernels=(), samples=(), **values):
        stated = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "B200", "output_tok_s": 100.0} | values
        return NewRun(run_id(stated, quality, kernels), stated, FILE, quality, kernels, samples)

    return make
