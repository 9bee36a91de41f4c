"""Runs one case in a fresh process group and comes back, whatever the case does.

A kernel can poison its CUDA context, hang, be killed for memory, leave processes behind or print without end. So
nothing of a case runs in this process: it is watched from outside through a heartbeat file and a bounded pipe.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nvdash.smoke.spec import LIMIT_S, CaseSpec

POLL_S, DUMP_S, GRACE_S = 0.05, 0.5, 3.0
LOG_LINES, LINE_CHARS = 400, 500
MAX_FACTS_BYTES = 64 * 2**20
TAG = "NVDASH_SMOKE_CASE"
"""In the environment of every process of a case, also of those that left its group."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a case does right now."""

    phase: str
    seconds: float
    """How long it has been in this phase."""
    lines: tuple[str, ...] = ()
    """What it printed since the last time, cut to the newest."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one process of a case ended."""

    ended: str
    """`facts`, `timeout`, `cancelled`, `killed` (from outside, as for memory), `signal`, `exit`, `half a report`."""
    phase: str
    seconds: float
    exit_code: int | None = None
    signal: str | None = None
    blocking: bool = False
    """Whether kernels were launched synchronously, so that an error names the call it belongs to."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def crashed(self) -> bool:
        """Whether it broke in a way that synchronous launches may explain."""
        return self.ended in ("signal", "exit", "half a report") or self.facts.get("outcome") == "crash"

    def summary(self) -> dict[str, Any]:
        """What a report keeps of it."""
        outcome = self.facts.get("outcome")
        seconds = round(self.seconds, 3)
        shown = {"ended": self.ended, "phase": self.phase, "seconds": seconds, "outcome": outcome}
        return {**shown, "exit_code": self.exit_code, "signal": self.signal, "blocking": self.blocking}


class Log:
    """The newest lines of a pipe, read by a thread of its own; any amount may pass through."""

    def __init__(self, pipe: Any) -> None:
        self.lines: deque[str] = deque(maxlen=LOG_LINES)
        self.total_bytes = 0
        self._fresh: deque[str] = deque(maxlen=40)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def fresh(self) -> tuple[str, ...]:
        """Lines since the last call."""
        return tuple(self._fresh.popleft() for _ in range(len(self._fresh)))

    def close(self) -> None:
        """Stop reading, also when a stray process still holds the other end."""
        self._stop.set()
        self._thread.join(timeout=2)

    def _read(self, pipe: Any) -> None:
        rest, overlong = b"", False
        with pipe:
            while True:
                ready, _, _ = select.select([pipe], [], [], 0.1)
                if not ready and self._stop.is_set():
                    break
                chunk = os.read(pipe.fileno(), 1 << 16) if ready else None
                if chunk == b"":
                    break
                if chunk:
                    self.total_bytes += len(chunk)
                    rest, overlong = self._split(rest + chunk, overlong)
        if rest and not overlong:
            self._keep(rest)

    def _split(self, data: bytes, overlong: bool) -> tuple[bytes, bool]:
        """Keep whole lines; of a line that does not end, keep its beginning once."""
        *whole, rest = data.replace(b"\r", b"\n").split(b"\n")
        for place, line in enumerate(whole):
            if line and not (overlong and place == 0):
                self._keep(line)
        overlong = overlong and not whole
        if len(rest) > LINE_CHARS * 4:
            if not overlong:
                self._keep(rest)
            return b"", True
        return rest, overlong

    def _keep(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")[:LINE_CHARS]
        self.lines.append(text)
        self._fresh.append(text)


def run_case(
    spec: CaseSpec,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
    cancel: threading.Event | None = None,
) -> tuple[list[Attempt], list[str]]:
    """The attempts at one case, and the newest lines it printed. `command` is completed with SPEC and OUT.

    A crash is tried a second time with synchronous launches, to find the call it really belongs to.
    """
    cancel = cancel or threading.Event()
    surroundings = {**os.environ, **(environment or {})}
    first, log = attempt(spec, command, surroundings, progress, cancel)
    if not first.crashed or cancel.is_set():
        return [first], log
    blocking = {**surroundings, "CUDA_LAUNCH_BLOCKING": "1"}
    second, more = attempt(spec, command, blocking, progress, cancel, blocking=True)
    return [first, second], [*log, "nvdash: once more, with synchronous launches", *more][-LOG_LINES:]


def attempt(
    spec: CaseSpec,
    command: Sequence[str],
    environment: Mapping[str, str],
    progress: Callable[[Progress], None],
    cancel: threading.Event,
    blocking: bool = False,
) -> tuple[Attempt, list[str]]:
    """Start the case once, watch it, and clear away everything it started."""
    with tempfile.TemporaryDirectory(prefix="nvdash-smoke-") as folder:
        source, out = Path(folder) / "spec.json", Path(folder) / "out.json"
        source.write_text(spec.to_json(), encoding="utf-8")
        tag = uuid.uuid4().hex
        process = subprocess.Popen(
            [*command, str(source), str(out)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**environment, TAG: tag},
        )
        log, began = Log(process.stdout), time.monotonic()
        try:
            watch = _Watch(spec.limits_s, out.with_suffix(".beat"), log, progress)
            stopped = watch.until_over(process, cancel)
        finally:
            end_group(process, tag)
            log.close()
        ended, facts = _ending(process, stopped, out)
        code = process.returncode
        name = signal.Signals(-code).name if code is not None and code < 0 else None
        seconds = time.monotonic() - began
        return Attempt(ended, watch.phase, seconds, code, name, blocking, facts), list(log.lines)


class _Watch:
    """Follows the heartbeat and holds every phase to its limit."""

    def __init__(self, limits: Mapping[str, float], beat: Path, log: Log, progress: Callable[[Progress], None]) -> None:
        self.phase, self._number, self._since = "import", 0, time.monotonic()
        self._limits, self._beat, self._log, self._progress = limits, beat, log, progress

    def until_over(self, process: "subprocess.Popen[bytes]", cancel: threading.Event) -> str | None:
        """Wait for the process; `timeout` or `cancelled` when it has to be stopped."""
        told = 0.0
        while process.poll() is None:
            self._follow()
            now = time.monotonic()
            if now - told > 0.25:
                told = now
                self._progress(Progress(self.phase, now - self._since, self._log.fresh()))
            if cancel.is_set():
                return "cancelled"
            if now - self._since > self._limits.get(self.phase, max(LIMIT_S.values())):
                self._ask_where(process)
                return "timeout"
            time.sleep(POLL_S)
        self._follow()
        self._progress(Progress(self.phase, time.monotonic() - self._since, self._log.fresh()))
        return None

    def _follow(self) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads(self._beat.read_text(encoding="utf-8")[:1000])
            if state["number"] != self._number and state["phase"] in LIMIT_S:
                self.phase, self._number, self._since = state["phase"], state["number"], time.monotonic()

    def _ask_where(self, process: "subprocess.Popen[bytes]") -> None:
        """Let the case print the stacks of its threads before it is ended."""
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGUSR1)
        time.sleep(DUMP_S)


def end_group(process: "subprocess.Popen[bytes]", tag: str) -> None:
    """End the process, its group, and whatever carries its tag."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)
    for stray in tagged(tag):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(stray, signal.SIGKILL)
    process.wait()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def tagged(tag: str) -> list[int]:
    """Processes whose environment carries the tag of a case; only Linux tells."""
    wanted, found = f"{TAG}={tag}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def _ending(process: "subprocess.Popen[bytes]", stopped: str | None, out: Path) -> tuple[str, Mapping[str, Any]]:
    """How the process ended, and the facts it left."""
    if stopped:
        return stopped, {}
    if out.exists():
        facts = _facts(out)
        return ("facts", facts) if facts else ("half a report", {})
    code = process.returncode
    if code == -signal.SIGKILL:
        return "killed", {}
    return ("signal" if code < 0 else "exit"), {}


def _facts(out: Path) -> Mapping[str, Any]:
    """The facts a case left; nothing where they are not whole."""
    if out.stat().st_size > MAX_FACTS_BYTES:
        return {}
    with contextlib.suppress(ValueError, RecursionError):
        facts = json.loads(out.read_text(encoding="utf-8", errors="replace"))
        if isinstance(facts, dict) and isinstance(facts.get("outcome"), str):
            return facts
    return {}
