"""One case in its own process: `python -m nvdash.smoke.case SPEC OUT`, under the engine's own interpreter.

It imports the standard library, torch and the engine, so that any environment which runs the engine runs the case.
It only measures: what the facts mean is judged by the process that started it.
"""

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nvdash.smoke.outcomes import NotHere, Refused
from nvdash.smoke.spec import CaseSpec

BEAT_S = 0.5
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "No available memory for the cache blocks",
    "To serve at least one request with the model's max seq len",
)
"""What libraries say of it: none of these is a statement about support."""


class Phases:
    """Which phase runs, told to the starting process by a heartbeat file."""

    def __init__(self, beat: Path) -> None:
        self.beat, self.spent = beat, [("import", 0.0)]
        self._began, self._stop = time.monotonic(), threading.Event()
        threading.Thread(target=self._pulse, daemon=True).start()

    @property
    def current(self) -> str:
        """The phase that runs now."""
        return self.spent[-1][0]

    def enter(self, name: str) -> None:
        """Leave the running phase and begin the next one."""
        self._close()
        self.spent.append((name, 0.0))
        self._tell()
        print(f"nvdash: {name}", flush=True)

    def end(self) -> list[dict[str, Any]]:
        """The phases with their seconds, each once."""
        self._close()
        self._stop.set()
        total: dict[str, float] = {}
        for name, seconds in self.spent:
            total[name] = total.get(name, 0.0) + seconds
        return [{"phase": name, "seconds": round(seconds, 3)} for name, seconds in total.items()]

    def _close(self) -> None:
        now = time.monotonic()
        name, seconds = self.spent[-1]
        self.spent[-1] = (name, seconds + now - self._began)
        self._began = now

    def _tell(self) -> None:
        write_atomically(self.beat, json.dumps({"phase": self.current, "number": len(self.spent), "at": time.time()}))

    def _pulse(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(OSError):
                self._tell()
            self._stop.wait(BEAT_S)


def write_atomically(path: Path, text: str) -> None:
    """Write the whole file or nothing: a temporary file, flushed to the disk, renamed into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def execute(spec: CaseSpec, phases: Phases) -> dict[str, Any]:
    """The facts of one case; every way an engine ends without them becomes an outcome."""
    engine = None
    try:
        with _outcomes():
            engine = importlib.import_module(f"nvdash.smoke.engines.{spec.engine}")
            return {"outcome": "done", **engine.run(spec, phases)}
    except _Ended as ended:
        facts = dict(ended.facts)
        with contextlib.suppress(Exception):  # versions still say what it was that refused or broke
            facts["environment"] = getattr(engine, "environment")()  # noqa: B009
        return facts


class _Ended(Exception):
    def __init__(self, outcome: str, error: BaseException, layer: str | None = None) -> None:
        shown = "".join(traceback.format_exception(error))[-4000:]
        message = f"{type(error).__name__}: {error}" if outcome == "crash" else str(error) or type(error).__name__
        self.facts = {"outcome": outcome, "layer": layer, "error": message[:2000], "stack": shown}


@contextlib.contextmanager
def _outcomes() -> Iterator[None]:
    try:
        yield
    except Refused as error:
        raise _Ended("refused", error, error.layer) from error
    except NotHere as error:
        raise _Ended("environment", error) from error
    except ImportError as error:
        raise _Ended("environment", error) from error
    except Exception as error:
        raise _Ended("oom" if is_out_of_memory(error) else "crash", error) from error


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out, by the type of an error or by the words that libraries use."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(words in str(error) for words in OUT_OF_MEMORY)


def main(arguments: list[str]) -> int:
    """Run the case of SPEC and leave its facts at OUT."""
    spec_path, out = (Path(argument) for argument in arguments)
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)
    phases = Phases(out.with_suffix(".beat"))
    facts = execute(CaseSpec.from_json(spec_path.read_text(encoding="utf-8")), phases)
    facts = {"outcome": facts.pop("outcome"), "phase": phases.current, "phases": phases.end(), **facts}
    write_atomically(out, json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
