"""Every sample of the shared material against the values that its INDEX names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nvdash.readers.bundle import read_file

ROOT = Path(__file__).parents[2]
FOLDERS = ("samples/logs", "samples/results")
WORDS = {
    "gpu": ("gpu",),
    "framework": ("framework", "version"),
    "version": ("version", "flashinfer_version"),
    "weight": ("weight_format",),
    "kv": ("kv_cache_dtype_requested", "kv_cache_dtype_resolved"),
    "attention": ("attention_backend",),
    "max_num_seqs": ("max_num_seqs",),
    "max_num_batched_tokens": ("max_num_batched_tokens",),
    "chunked": ("enable_chunked_prefill",),
    "prefix": ("prefix_cache_state",),
    "gpu_memory_utilization": ("gpu_memory_utilization",),
    "dataset": ("dataset",),
    "ISL/OSL": ("isl_target", "osl_target"),
    "checkpoint": ("model_bytes",),
    "loaded": ("weights_gib",),
    "preemptions": ("preemptions",),
    "hit rate": ("prefix_hit_rate",),
    "KV tokens": ("kv_tokens",),
    "quality": ("quality",),
    "number of requests": ("requests_completed",),
    "scheduler": ("max_num_seqs", "max_num_batched_tokens"),
    "flashinfer": ("flashinfer_version",),
    "workload": ("workload",),
    "model": ("model",),
    "concurrency": ("max_concurrency",),
}
"""Words of `missing_ask_uploader`, which is prose, and the fields one of which must be asked for."""
NOT_OPEN = {"concurrency is always 1"}
"""Remarks among the entries that name nothing which is missing."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_sample_gives_the_values_of_its_index(shared, folder):
    command = [sys.executable, str(shared / "acceptance/check_reads.py"), "--project", str(ROOT), str(shared / folder)]
    environment = {**os.environ, "NVDASH_CMD": f"{sys.executable} -m nvdash"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout


PRIVATE = ("/home/", "localhost", "127.0.0.1", "192.0.2.", "Janet", "/models/", "svc.cluster", "test-host")
"""Pieces of paths, addresses and prompts that stand in the samples."""


def asked_for(sentence: str) -> list[tuple[str, ...]]:
    """The fields that one prose entry asks for, by the words in it."""
    words = re.sub(r"\(.*?\)", "", sentence).lower()
    return [fields for word, fields in WORDS.items() if word.lower() in words]


def test_what_an_index_says_is_missing_is_asked_for(shared):
    folder = shared / "samples/results"
    index = yaml.safe_load((folder / "INDEX.yaml").read_text())
    for item in index["files"]:
        asked = {gap.field for gap in read_file(folder / item["file"]).missing}
        for sentence in sorted(set(item.get("missing_ask_uploader", [])) - NOT_OPEN):
            wanted = asked_for(sentence)
            assert wanted, f"no field for {sentence!r}"
            for fields in wanted:
                assert asked & set(fields), f"{item['file']}: {sentence!r} is not asked for ({fields})"


def test_no_answer_keeps_a_path_an_address_or_a_prompt(shared):
    for folder in FOLDERS:
        for path in sorted((shared / folder).rglob("*")):
            if path.is_file() and path.name != "INDEX.yaml":
                answer = {k: v for k, v in read_file(path).as_dict().items() if k not in ("file", "error")}
                text = str(answer)
                for forbidden in PRIVATE:
                    assert forbidden not in text, f"{path.name} keeps {forbidden}"
