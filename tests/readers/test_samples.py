"""Which samples file belongs to which task, and what is kept of it."""

import json

import pytest

from nvdash.errors import NvdashError
from nvdash.readers.samples import SampleScore, read_samples, task_of


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("samples_gsm8k_2026-06-07T20-15-51.136059.jsonl", "gsm8k"),
        ("samples_gsm8k_cot_2026-06-07T20-15-51.136059.jsonl", "gsm8k_cot"),
        ("samples_gsm8k_qwen36-27b_nvfp4.jsonl", "gsm8k"),
        ("samples_mmlu_2026-06-07T20-15-51.1.jsonl.gz", None),
        ("results.json", None),
    ],
)
def test_the_name_says_the_task(name, task):
    assert task_of(name, ["gsm8k", "gsm8k_cot"]) == task


def test_only_a_key_and_numbers_are_kept(tmp_path):
    path = tmp_path / "samples_a.jsonl"
    line = {"doc_id": 7, "filter": "none", "metrics": ["acc", "text", "gone"], "acc": 1.0, "text": "secret"}
    path.write_text(json.dumps({**line, "filtered_resps": ["secret"]}))
    assert read_samples(path) == (SampleScore("acc", "none", "7", 1.0),)


def test_another_record_is_refused(tmp_path):
    path = tmp_path / "samples_a.jsonl"
    path.write_text('{"doc_id": 1}')
    with pytest.raises(NvdashError, match="one sample per line"):
        read_samples(path)


def test_the_shared_samples_file_gives_its_scores(shared):
    path = shared / "samples/results/lm-eval/samples_gsm8k_qwen36-27b_nvfp4.jsonl"
    scores = read_samples(path)
    assert len(scores) == len(path.read_text().splitlines())
    assert {score.metric for score in scores} == {"exact_match"}
