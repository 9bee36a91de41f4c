import json
import struct
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvdash.errors import NvdashError, UnknownError, UsageError
from nvdash.readers import checkpoint
from nvdash.readers.checkpoint import list_tensors
from nvdash.readers.safetensors import Tensor


def write(path: Path, header: object, data_bytes: int = 0, length: int | None = None) -> Path:
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(content) if length is None else length) + content)
    with path.open("r+b") as file:
        file.truncate(8 + len(content) + data_bytes)
    return path


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = {
    "__metadata__": {"format": "pt"},
    "a.weight": entry("BF16", [4, 8], 0, 64),
    "b.weight": entry("F4", [4, 4], 64, 72),
}


def test_a_file_lists_its_tensors_without_their_weights(tmp_path):
    listed = list_tensors(str(write(tmp_path / "model.safetensors", GOOD, 72)))
    assert listed.tensors == (Tensor("a.weight", "BF16", (4, 8), 64), Tensor("b.weight", "F4", (4, 4), 8))
    assert listed.stored_bytes == 72


@pytest.mark.parametrize(
    ("header", "data_bytes", "length", "found"),
    [
        (b"{}", 0, 2**63, "a header of 9,223,372,036,854,775,808 bytes"),
        (b"{}", 0, 3, "a header of 3 bytes in a file of 10"),
        (b"[]", 0, None, "a list"),
        (b"{", 0, None, "Expecting property name"),
        (b"[" * 200_000, 0, None, ""),
        (b'{"a": {}, "a": {}}', 0, None, "a key twice"),
        ({"a": entry("BF16", [4], 0, 8), "b": entry("BF16", [4], 4, 12)}, 12, None, "an overlap"),
        ({"a": entry("BF16", [4], 8, 16)}, 16, None, "a gap"),
        ({"a": entry("BF16", [4], 0, 8)}, 16, None, "they end at 8"),
        ({"a": entry("BF16", [4], 0, 8)}, 4, None, "they end at 8"),
        ({"a": entry("BF17", [4], 0, 8)}, 8, None, "BF17"),
        ({"a": entry("BF16", [2**40, 2**40], 0, 8)}, 8, None, "found 8 in data_offsets"),
        ({"a": entry("BF16", [-4], 0, 8)}, 8, None, "[-4]"),
        ({"a": entry("BF16", [True], 0, 2)}, 2, None, "[True]"),
        ({"a": entry("BF16", [1.0], 0, 2)}, 2, None, "[1.0]"),
        ({"a": {"dtype": "BF16", "shape": [4], "data_offsets": [8, 0]}}, 8, None, "[8, 0]"),
        ({"a": "x"}, 0, None, "None"),
    ],
)
def test_a_hostile_header_is_refused_with_place_and_reason(tmp_path, header, data_bytes, length, found):
    path = write(tmp_path / "model.safetensors", header, data_bytes, length)
    with pytest.raises(UsageError) as refusal:
        list_tensors(str(path))
    assert refusal.value.where.startswith("model.safetensors")
    assert found in refusal.value.found


def test_an_empty_file_is_no_checkpoint(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(UsageError, match="in a file of 0"):
        list_tensors(str(tmp_path))


@given(st.binary(max_size=200))
def test_no_bytes_at_all_make_the_reader_fail_unrefused(content):
    from io import BytesIO

    from nvdash.readers.safetensors import parse_header

    try:
        parse_header(BytesIO(content), len(content), "fuzz")
    except NvdashError as refusal:
        assert refusal.where.startswith("fuzz")


@pytest.fixture
def sharded(tmp_path):
    write(tmp_path / "model-00001-of-00002.safetensors", {"a.weight": entry("BF16", [4, 8], 0, 64)}, 64)
    write(tmp_path / "model-00002-of-00002.safetensors", {"b.weight": entry("F8_E4M3", [16], 0, 16)}, 16)
    placed = {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors"}
    return write_index(tmp_path, placed, 80)


def write_index(folder, placed, total):
    content = {"metadata": {"total_size": total}, "weight_map": placed}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
    return folder


def test_a_sharded_checkpoint_is_all_its_shards(sharded):
    listed = list_tensors(str(sharded))
    assert (len(listed.tensors), listed.stored_bytes, listed.warnings) == (2, 80, ())
    assert list_tensors(str(sharded / "model.safetensors.index.json")).tensors == listed.tensors


def test_a_wrong_total_in_the_index_is_said(sharded):
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    write_index(sharded, index["weight_map"], 999)
    assert list_tensors(str(sharded)).warnings == ("the index states 999 bytes, the headers add up to 80",)


@pytest.mark.parametrize(
    ("file", "found"),
    [("../../etc/passwd", "etc/passwd"), ("/etc/passwd", "/etc"), ("x.bin", "x.bin"), ("x.safetensors", "No such")],
)
def test_an_index_names_only_files_beside_it(sharded, file, found):
    write_index(sharded, {"a.weight": file}, 80)
    with pytest.raises(UsageError) as refusal:
        list_tensors(str(sharded))
    assert found in refusal.value.found


def test_a_tensor_that_its_shard_does_not_hold_is_refused(sharded):
    write_index(sharded, {"c.weight": "model-00001-of-00002.safetensors"}, 80)
    with pytest.raises(UsageError, match=r"c\.weight"):
        list_tensors(str(sharded))


def test_a_second_copy_of_the_whole_is_not_counted_twice(tmp_path):
    for name in ("model.safetensors", "consolidated.safetensors"):
        write(tmp_path / name, GOOD, 72)
    assert list_tensors(str(tmp_path)).stored_bytes == 72


def test_a_folder_without_safetensors_is_unknown(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UnknownError):
        list_tensors(str(tmp_path))


class Hub(SimpleHTTPRequestHandler):
    """A local stand-in for the Hub: file listing, HEAD and ranged GET of one repository."""

    def __init__(self, *arguments, folder, asked, **options):
        self.folder, self.asked = folder, asked
        super().__init__(*arguments, directory=str(folder), **options)

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path.startswith("/api/models/"):
            files = [{"rfilename": path.name} for path in sorted(self.folder.iterdir())]
            return self.answer(200, json.dumps({"id": "team/tiny", "siblings": files}).encode())
        path = self.folder / Path(self.path).name
        if not path.is_file():
            return self.answer(404, b"")
        content = path.read_bytes()
        span = self.headers.get("Range", "")
        first, last = (int(part) for part in span.removeprefix("bytes=").split("-")) if span else (0, len(content))
        self.asked.append(min(last + 1, len(content)) - first)
        return self.answer(206 if span else 200, content[first : last + 1])

    def do_HEAD(self):
        path = self.folder / Path(self.path).name
        self.answer(200 if path.is_file() else 404, b"")

    def answer(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"0123"')
        self.send_header("X-Repo-Commit", "0" * 40)
        if status == 404:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def test_a_hub_repository_is_listed_from_headers_alone(tmp_path, monkeypatch):
    folder, asked = tmp_path / "tiny", []
    folder.mkdir()
    write(folder / "model.safetensors", {"a.weight": entry("BF16", [1000, 1000], 0, 2_000_000)}, 2_000_000)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, folder=folder, asked=asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    from huggingface_hub import HfApi

    api = HfApi(endpoint=f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(checkpoint, "hub_answers", lambda: True)
    monkeypatch.setattr("huggingface_hub.get_safetensors_metadata", api.get_safetensors_metadata)
    try:
        listed = list_tensors("team/tiny")
    finally:
        server.shutdown()
        server.server_close()
    assert listed.tensors == (Tensor("a.weight", "BF16", (1000, 1000), 2_000_000),)
    assert sum(asked) < 200_000


def test_a_repository_is_unknown_while_the_hub_cannot_be_reached(monkeypatch):
    monkeypatch.setattr(checkpoint, "hub_answers", lambda: False)
    with pytest.raises(UnknownError) as refusal:
        list_tensors("team/tiny")
    assert "cannot be reached" in refusal.value.found
