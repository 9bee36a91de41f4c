"""Every sample file that reads can be stored, once, and comes out again as it went in."""

import pytest

from nvdash.answers import results, submission
from nvdash.errors import NvdashError
from nvdash.readers.bundle import read_file
from nvdash.store import runs

COMPARED = ("output_tok_s", "ttft_mean_ms", "tpot_mean_ms", "requests_completed")


def files(shared):
    folders = [shared / "samples" / name for name in ("results", "logs", "vllm-cpu")]
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.mark.full
@pytest.mark.timeout(600)
def test_every_sample_is_stored_once_or_refused_in_words(shared, tmp_path):
    stored = refused = 0
    for path in files(shared):
        reading = read_file(path)
        try:
            answer = submission.submit([path])
        except NvdashError as refusal:
            assert refusal.expected
            assert refusal.found
            refused += 1
            continue
        assert answer["added"] or answer["duplicates"], path.name
        assert submission.submit([path])["added"] == [], path.name
        for run, identity in zip(reading.runs, answer["run_ids"], strict=False):
            kept = runs.get(identity)
            same = [name for name in COMPARED if run.get(name) is not None]
            assert [kept[name] for name in same] == [run.get(name) for name in same], path.name
        stored += len(answer["added"])
    assert stored > 100
    assert refused > 0
    out = results.export("json", tmp_path / "out")
    assert len(out["run_ids"]) == runs.count()
