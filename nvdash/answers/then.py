"""What an older matrix said: the commit that had a digest, asked with its own code.

An old link names the digest of the facts it was made with. Where git still has them, that revision is unpacked into
the cache folder and its own command line answers, so that then and now can stand side by side.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from nvdash.readers.compiled import cache_folder
from nvdash.readers.digest import DIGEST_DIGITS, SHIPPED

ROOT = SHIPPED.parent
NEWEST_COMMITS = 400
WAIT_S = 30


def then(question: Mapping[str, Any], digest: str) -> dict[str, Any] | None:
    """The answer of `check` under an older digest; None where git does not have it, or it cannot answer this."""
    commit = commit_of(digest) if re.fullmatch(rf"[0-9a-f]{{{DIGEST_DIGITS}}}", digest) else None
    if commit is None:
        return None
    flags = [part for key, value in question.items() if value is not None
             for part in (f"--{key.replace('_', '-')}", str(value))]  # fmt: skip
    command = [sys.executable, "-m", "nvdash", "check", *flags, "--json"]
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):
        done = subprocess.run(command, cwd=unpacked(commit), capture_output=True, text=True, timeout=WAIT_S)
        answer = json.loads(done.stdout)
        return {**answer, "commit": commit} if "verdict" in answer else None
    return None


@lru_cache(maxsize=64)
def commit_of(digest: str) -> str | None:
    """The newest commit whose shipped matrix has this digest; None where there is none, or no git."""
    try:
        listed = _git("log", f"-{NEWEST_COMMITS}", "--format=%H", "--", "matrix").decode().split()
    except (OSError, subprocess.CalledProcessError):
        return None
    return next((commit for commit in listed if digest_at(commit) == digest), None)


def digest_at(commit: str) -> str:
    """The matrix digest of one commit, computed as `readers.digest` does for the working tree."""
    whole = hashlib.sha256()
    for path, blob in _yaml_files(commit):
        whole.update(f"0:{path}\0".encode())
        whole.update(_content_digest(blob))
    return whole.hexdigest()[:DIGEST_DIGITS]


def _yaml_files(commit: str) -> Iterator[tuple[str, str]]:
    """Path below `matrix/` and blob of every YAML file, in the order of the digest."""
    rows = _git("ls-tree", "-r", "-z", commit, "matrix/").decode().rstrip("\0").split("\0")
    found = {Path(row.split("\t")[1]): row.split()[2] for row in rows if row.endswith(".yaml")}
    for path in sorted(found):
        yield path.relative_to("matrix").as_posix(), found[path]


@lru_cache(maxsize=8192)
def _content_digest(blob: str) -> bytes:
    return hashlib.sha256(_git("cat-file", "blob", blob)).digest()


def unpacked(commit: str) -> Path:
    """The code and facts of one commit in the cache folder."""
    folder = cache_folder() / "then" / commit
    if not folder.exists():
        tree = BytesIO(_git("archive", commit, "nvdash", "matrix"))
        with tarfile.open(fileobj=tree) as archive:
            archive.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True, timeout=WAIT_S).stdout
