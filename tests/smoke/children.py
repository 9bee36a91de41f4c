"""Cases that misbehave, one per failure mode: `python children.py MODE SPEC OUT`."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HANG_S = 600


def beat(out: Path, phase: str, number: int) -> None:
    out.with_suffix(".beat").write_text(json.dumps({"phase": phase, "number": number, "at": time.time()}))


def main(mode: str, out: Path) -> None:
    beat(out, "prefill", 2)
    time.sleep(0.2)
    if mode == "segfault":
        ctypes.string_at(0)
    elif mode == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(HANG_S)
    elif mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "half":
        out.write_text('{"outcome": "done", "numbers": [')
    elif mode == "exit":
        print("last words")
        sys.exit(3)
    elif mode == "chatter":
        line = b"x" * 99 + b"\n"
        for _ in range(100):
            sys.stdout.buffer.write(line * 10_000)  # 100 x 1 MB
        sys.stdout.buffer.write(b"y" * 5_000_000 + b"\nthe end\n")
        out.write_text(json.dumps({"outcome": "done"}))
    elif mode in ("grandchildren", "escaped"):
        code = f"import time; time.sleep({HANG_S})"
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=mode == "escaped")
        print(f"left {child.pid}", flush=True)
        out.write_text(json.dumps({"outcome": "done"}))
    elif mode == "heals":
        if "CUDA_LAUNCH_BLOCKING" not in os.environ:
            os.abort()
        out.write_text(json.dumps({"outcome": "done"}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[3]))
