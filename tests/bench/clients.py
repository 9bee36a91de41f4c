"""How page scripts fare under many visitors at once, and whether memory stays flat, as JSON rows.

    python tests/bench/clients.py [--clients N] [--seconds N] [--reruns N]

Every visitor is a WebSocket on the loopback that asks for one rerun in five seconds, spread over the six pages. The
server times its own scripts, so neither the browser nor this process counts. A busy machine slows one visitor and
thirty alike; the ratio of the two is what says something.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

from timing import row  # noqa: E402

PAGES = ("", "matrix", "memory", "tradeoffs", "smoke", "submit")
GPUS = ("rtx-5090", "h200-sxm", "b200-hgx", "h100-sxm", "l40s", "a100-80gb-sxm")
PACE_S = 5.0
SETTLING = 100
"""Reruns before memory is first looked at: imports, compiled facts and caches are filled by then."""


def serve(port: int, log: Path) -> None:
    """The dashboard in this process; each script run appends its wall and thread seconds to a file."""
    from streamlit.runtime.scriptrunner import script_runner

    from nvdash.ui import serve as dashboard

    execute = script_runner.exec_func_with_error_handling

    def timed(*arguments: Any, **named: Any) -> Any:
        start, spent = time.perf_counter(), time.thread_time()
        answer = execute(*arguments, **named)
        with log.open("a") as out:
            out.write(f"{time.perf_counter() - start} {time.thread_time() - spent}\n")
        return answer

    script_runner.exec_func_with_error_handling = timed
    dashboard.main(["--server.port", str(port)])


class Visitor:
    """One open page: asks for reruns and reads what comes until the script has finished."""

    def __init__(self, socket: Any, number: int) -> None:
        self.socket, self.number = socket, number

    async def rerun(self) -> None:
        """One run of the page's script, to its end."""
        from streamlit.proto.BackMsg_pb2 import BackMsg
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        message = BackMsg()
        message.rerun_script.page_name = PAGES[self.number % len(PAGES)]
        message.rerun_script.query_string = f"gpu={GPUS[self.number // len(PAGES) % len(GPUS)]}"
        await self.socket.send(message.SerializeToString())
        while True:
            told = ForwardMsg.FromString(await asyncio.wait_for(self.socket.recv(), 120))
            if told.WhichOneof("type") == "script_finished":
                return


@asynccontextmanager
async def visitor_of(port: int, number: int = 0) -> AsyncIterator[Visitor]:
    """A WebSocket as the browser opens it."""
    from websockets.asyncio.client import connect

    address, origin = f"ws://127.0.0.1:{port}/_stcore/stream", f"http://127.0.0.1:{port}"
    patience = {"open_timeout": 120, "ping_interval": None, "max_size": None}
    async with connect(address, subprotocols=["streamlit"], origin=origin, **patience) as socket:
        yield Visitor(socket, number)


async def visits(port: int, log: Path, count: int, seconds: float, first: int = 0) -> list[tuple[float, float]]:
    """Script times while visitors ask once in PACE_S each, turns spread evenly; opening a page is not counted."""
    opened, since = asyncio.Barrier(count), [0]

    async def one(number: int) -> None:
        async with visitor_of(port, first + number) as visitor:
            await visitor.rerun()
            await opened.wait()
            since[0] = since[0] or len(taken(log))
            await asyncio.sleep(PACE_S * number / count)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                due = time.monotonic() + PACE_S
                await visitor.rerun()
                await asyncio.sleep(max(0.0, due - time.monotonic()))

    await asyncio.gather(*(one(number) for number in range(count)))
    return taken(log, since[0])


async def reruns(port: int, count: int) -> None:
    """One visitor who walks through the pages without a pause."""
    async with visitor_of(port) as visitor:
        for number in range(count):
            visitor.number = number
            await visitor.rerun()


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, Path, int]]:
    """A dashboard of its own: port, file of script times, process id."""
    import socket
    import subprocess
    import urllib.request

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = folder / "scripts.txt"
    environment = {**os.environ, "NVDASH_STORE": str(folder / "nvdash.duckdb"), "NVDASH_SEED": "on"}
    command = [sys.executable, str(Path(__file__)), "--serve", str(port), str(log)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, **quiet)
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and server.poll() is None:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
                break
            time.sleep(0.2)
        yield port, log, server.pid
    finally:
        server.terminate()
        server.wait(20)


def taken(log: Path, since: int = 0) -> list[tuple[float, float]]:
    """Wall and thread seconds of every script run after the first `since`."""
    lines = log.read_text().splitlines()[since:] if log.exists() else []
    return [(float(wall), float(spent)) for wall, spent in map(str.split, lines)]


def p95(values: list[float]) -> float:
    """The value that 95 of 100 stay below."""
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def rows(clients: int = 30, seconds: float = 40, count: int = 500) -> list[dict[str, Any]]:
    """Script time of one visitor and of many, and memory over many reruns."""
    import psutil

    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (port, log, pid):
        asyncio.run(reruns(port, SETTLING))
        memory_mib = [psutil.Process(pid).memory_info().rss / 2**20]
        alone = []
        for number in range(len(PAGES)):
            alone += asyncio.run(visits(port, log, 1, seconds / 2, first=number))
        together = asyncio.run(visits(port, log, clients, seconds))
        asyncio.run(reruns(port, max(1, count - len(taken(log)))))
        memory_mib.append(psutil.Process(pid).memory_info().rss / 2**20)
        total = len(taken(log))
    one, many = (p95([wall for wall, _ in times]) * 1000 for times in (alone, together))
    cpu_one, cpu = (p95([spent for _, spent in times]) * 1000 for times in (alone, together))
    grown = memory_mib[1] / memory_mib[0]
    return [
        row(
            f"page script, p95 of {clients} visitors",
            many,
            "ms",
            "ratio <= 3",
            ratio=many / one,
            baseline="one visitor",
            baseline_ms=one,
            cpu=cpu,
            ratio_cpu=cpu / cpu_one,
            load=os.getloadavg()[0],
            reruns=len(together),
        ),
        row(
            f"memory after {total} reruns",
            memory_mib[1],
            "MiB",
            "ratio <= 1.15",
            ratio=grown,
            baseline_mib=memory_mib[0],
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--reruns", type=int, default=500)
    parser.add_argument("--serve", nargs=2, metavar=("PORT", "FILE"), help="used by the benchmark itself")
    options = parser.parse_args()
    if options.serve:
        serve(int(options.serve[0]), Path(options.serve[1]))
    else:
        print(json.dumps(rows(options.clients, options.seconds, options.reruns), indent=1))
