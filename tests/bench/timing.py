"""What every benchmark shares: work timed in turns, by the clock and by processor time, and rows that name a target.

Work is taken in turns, so that a busy moment hits all alike, and the best turn counts: a machine may be busy, it cannot
be too fast. Processor time covers all threads and ended child processes, so it says more than the clock under load.
"""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_BYTECODE = tempfile.TemporaryDirectory(prefix="nvdash-bench-")


@dataclass(frozen=True, slots=True)
class Timing:
    """The best of several turns."""

    wall_s: float
    cpu_s: float


def in_turns(work: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, Timing]:
    """Every piece of work once per turn; the best wall and processor seconds of each."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(repetitions):
        for name, function in work.items():
            start, spent = time.perf_counter(), processor_s()
            function()
            times[name].append((time.perf_counter() - start, processor_s() - spent))
    return {name: Timing(*map(min, zip(*pairs, strict=True))) for name, pairs in times.items()}


def processor_s() -> float:
    """Seconds of processor time that this process, its threads and its ended children took so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def process(command: Sequence[str], accepted: tuple[int, ...] = (0,), words: str = "") -> Callable[[], None]:
    """A whole process, `words` on its input; another exit code than the accepted ones ends the benchmark.

    Bytecode is kept from turn to turn, as an installed tool keeps it, whatever this process was told.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": _BYTECODE.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> None:
        done = subprocess.run(command, capture_output=True, check=False, input=words.encode(), env=environment)
        if done.returncode not in accepted:
            raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-500:]}")

    return run


def row(name: str, value: float | None, unit: str, target: str = "", **more: Any) -> dict[str, Any]:
    """One figure with its target, e.g. `<= 0.3`, and whether it is met; null where it was not measured.

    `more` may name a baseline of the same run and the ratio to it; a target of the ratio is `ratio <= 2`.
    """
    measured = more.get("ratio") if target.startswith("ratio ") else value
    met = None
    if target and measured is not None:
        word, bound = target.removeprefix("ratio ").split()
        met = measured <= float(bound) if word == "<=" else measured >= float(bound)
    figures = {
        key: round(item, 5) if isinstance(item, float) else item for key, item in {"value": value, **more}.items()
    }
    return {"name": name, "unit": unit, "target": target or None, "met": met, **figures}
