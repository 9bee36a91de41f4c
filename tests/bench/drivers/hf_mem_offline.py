"""Runs hf-mem over a local folder, offline: its HTTP client answers from the files. Reads a question on stdin.

Run by the Python that has hf-mem installed; see tests/bench/accuracy.py.
"""

import json
import sys
from pathlib import Path

import httpx2
from hf_mem.run import run


def answer(folder: Path, request: httpx2.Request) -> httpx2.Response:
    """What the Hub would say about the files of this folder."""
    if "/api/models/" in request.url.path:
        files = [{"type": "file", "path": path.name} for path in sorted(folder.iterdir())]
        return httpx2.Response(200, json=files)
    path = folder / request.url.path.rpartition("/")[2]
    if not path.is_file():
        return httpx2.Response(404)
    content = path.read_bytes()
    span = request.headers.get("range")
    if not span:
        return httpx2.Response(200, content=content)
    first, _, last = span.removeprefix("bytes=").partition("-")
    return httpx2.Response(206, content=content[int(first) : int(last or len(content)) + 1])


def main() -> None:
    """Print hf-mem's cache bytes for one request of the asked length, or why it has none."""
    asked = json.load(sys.stdin)
    folder = Path(asked["folder"])
    transport = httpx2.MockTransport(lambda request: answer(folder, request))
    original = httpx2.AsyncClient

    def offline(**options: object) -> httpx2.AsyncClient:
        options.pop("http2", None)
        return original(transport=transport, **options)

    httpx2.AsyncClient = offline
    try:
        found = run(
            "local/model", experimental=True, max_model_len=asked["length"], kv_cache_dtype=asked["kv_cache_dtype"]
        )
        print(json.dumps({"kv_bytes": found.kv_cache, "weights_bytes": found.memory}))
    except Exception as error:
        print(json.dumps({"kv_bytes": None, "reason": f"{type(error).__name__}: {str(error)[:120]}"}))


if __name__ == "__main__":
    main()
