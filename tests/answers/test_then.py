"""An old digest is found in git and asked with its own code."""

import subprocess

from nvdash.answers import then
from nvdash.readers.digest import SHIPPED, digest_of


def test_the_digest_of_a_commit_is_that_of_its_files(monkeypatch, tmp_path):
    monkeypatch.setenv("NVDASH_CACHE", str(tmp_path))
    commit = then._git("log", "-1", "--format=%H", "--", "matrix").decode().strip()
    subprocess.run(["git", "-C", str(SHIPPED.parent), "cat-file", "-e", commit], check=True)
    folder = then.unpacked(commit)
    monkeypatch.setattr("nvdash.readers.digest.matrix_roots", lambda: (folder / "matrix",))
    assert then.digest_at(commit) == digest_of(sorted((folder / "matrix").rglob("*.yaml")))
    assert then.commit_of(then.digest_at(commit)) == commit


def test_a_digest_nobody_had_is_not_found():
    assert then.commit_of("000000000000") is None


def test_a_word_that_is_no_digest_is_never_handed_to_git():
    assert then.then({"gpu": "sm120"}, "--output=/tmp/x") is None
