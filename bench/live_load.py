"""What a live controller costs: `make live-load` (docs/performance.md).

idle      1,000 jobs wait and 200 run, real processes on pretended nodes, under a real `trainyard up`: CPU of
          its process while nothing happens, beside a process that only has the same timers
recovery  a store with 10,000 jobs and 100,000 events, and as many events after the last snapshot as there may
          be: a new process, from opening the store to its first decision, on SQLite and PostgreSQL, beside
          plain reading of what recovery has to read
submit    submissions, each committed by itself, beside plain sqlite3 with as many bytes

CPU is user and system time of the process itself, as the kernel counts it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

IDLE_LIMIT = 5.0  # per cent of a core
RECOVERY_LIMIT_S = 5.0
SLEEP = ["sleep", "100000"]
TIMERS = """
import asyncio, sys, threading, time
async def main():
    while True:
        await asyncio.sleep(float(sys.argv[1]))
threading.Thread(target=lambda: time.sleep(1e6), daemon=True).start()
asyncio.run(main())
"""


def main() -> int:
    """Measure what was asked for; 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["idle", "recovery", "submit", []], help="default: all")
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--running", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0, help="of watching an idle controller")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    if asked.child:
        print(json.dumps(_recover(asked.child)))
        return 0
    kept = [PARTS[part](asked) for part in asked.parts or PARTS]
    return 0 if all(kept) else 1


# -- a controller at rest -----------------------------------------------------------------------------------


def _idle(asked: argparse.Namespace) -> bool:
    """Watch a controller that has nothing to do."""
    with tempfile.TemporaryDirectory(prefix="live-load-") as folder, _up(Path(folder), asked.running) as up:
        pid, ask = up
        with ThreadPoolExecutor(8) as clients:
            body = {"command": SLEEP, "workdir": "/"}
            list(clients.map(lambda _: ask("jobs", body), range(asked.running + asked.waiting)))
        _wait_for(lambda: ask("jobs?state=running&limit=1")["total"] == asked.running)
        time.sleep(3.0)  # the last starts are marked
        with _timers(1.0) as idle:
            before, idle_before, began = _cpu_s(pid), _cpu_s(idle), time.monotonic()
            time.sleep(asked.seconds)
            took, idle_took = _cpu_s(pid) - before, _cpu_s(idle) - idle_before
            watched = time.monotonic() - began
        memory = _memory_mb(pid)
    percent, idle_percent = 100 * took / watched, 100 * idle_took / watched
    print(f"idle: {asked.waiting:,} jobs wait, {asked.running} run; watched for {watched:.0f} s")
    print(f"  controller {percent:.2f} % of a core ({memory:.0f} MB); limit {IDLE_LIMIT:g} %")
    ratio = percent / max(idle_percent, 0.01)
    print(f"  an asyncio process with the same timers {idle_percent:.2f} %: {ratio:.0f}x", flush=True)
    return percent <= IDLE_LIMIT


@contextlib.contextmanager
def _up(folder: Path, gpus: int) -> Iterator[tuple[int, Any]]:
    """A controller with so many pretended GPUs: its process, and how to ask it."""
    nodes = {"count": max(gpus // 8, 1), "gpus": min(gpus, 8), "cpus": 64, "memory_gb": 64}
    (folder / "cluster.yaml").write_text(json.dumps({"name": "load", "nodes": [nodes]}))
    data = folder / "data"
    words = ["--cluster", str(folder / "cluster.yaml"), "--data", str(data), "--listen", "127.0.0.1:0"]
    program = str(Path(sys.executable).with_name("trainyard"))
    with open(folder / "log", "wb") as log:
        up = subprocess.Popen(
            [program, "up", "--policy", "fifo", *words], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert up.stdout is not None
        said = up.stdout.readline().split()
        if not said:
            raise SystemExit((folder / "log").read_text())
        token = (data / "token").read_text().strip()
        yield up.pid, lambda path, body=None: _ask(f"{said[1]}/api/v1/{path}", token, body)
    finally:
        up.kill()
        up.wait()
        if up.stdout is not None:
            up.stdout.close()
        _end_runs(data)


def _ask(url: str, token: str, body: object) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urlopen(Request(url, data, headers), timeout=600) as answer:
        return json.load(answer)


def _end_runs(data: Path) -> None:
    """End the processes of all jobs; their shims see that, and leave nothing behind."""
    begun = list(data.glob("jobs/*/*/*/shim.json"))
    for path in begun:
        with contextlib.suppress(ValueError, KeyError):
            for pid in json.loads(path.read_bytes())["pids"]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    _wait_for(lambda: all(path.with_name("exit.json").exists() for path in begun), 120.0)
    time.sleep(1.0)  # nobody writes into the folder any more


def _wait_for(holds: Any, most_s: float = 1800.0) -> None:
    until = time.monotonic() + most_s
    while not holds():
        if time.monotonic() > until:
            raise SystemExit("it did not come to that")
        time.sleep(1.0)


@contextlib.contextmanager
def _timers(every_s: float) -> Iterator[int]:
    """A process that does nothing but wake up."""
    child = subprocess.Popen([sys.executable, "-c", TIMERS, str(every_s)])
    time.sleep(2.0)
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def _cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# -- recovery -----------------------------------------------------------------------------------------------


def _recovery(asked: argparse.Namespace) -> bool:
    """Recover a large store in a process of its own."""
    from postgres_cases import MISSING, Postgres, is_there

    with tempfile.TemporaryDirectory(prefix="live-load-") as folder:
        kept = _recover_one(asked, "SQLite", f"sqlite:///{folder}/store")
    if not is_there():
        print(f"  PostgreSQL: left out, it {MISSING}")
        return kept
    server = Postgres()
    try:
        return _recover_one(asked, "PostgreSQL", server.new_database()) and kept
    finally:
        server.close()


def _recover_one(asked: argparse.Namespace, name: str, url: str) -> bool:
    from load_cases import fill

    filled = fill(url, asked.jobs, asked.events)
    child = [sys.executable, __file__, "--child", url]
    told = json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
    print(f"recovery, {name}: {filled}")
    print(
        f"  to the first decision {told['cpu_s']:.2f} s of CPU ({told['wall_s']:.2f} s by the clock, "
        f"{told['memory_mb']:.0f} MB at most); limit {RECOVERY_LIMIT_S:g} s; "
        f"the process began with {told['import_s']:.2f} s of imports"
    )
    ratio = told["cpu_s"] / max(told["read_s"], 1e-3)
    print(f"  plain reading of snapshot, tail and jobs {told['read_s']:.2f} s: {ratio:.1f}x", flush=True)
    return bool(told["cpu_s"] <= RECOVERY_LIMIT_S)


def _recover(url: str) -> dict[str, float]:
    """Be a controller that comes back, up to its first decision."""
    from load_cases import read_plainly, recover

    import_s = time.process_time()
    wall, cpu = time.monotonic(), time.process_time()
    recover(url)
    wall_s, cpu_s = time.monotonic() - wall, time.process_time() - cpu
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    cpu = time.process_time()
    read_plainly(url)
    read_s = time.process_time() - cpu
    numbers = {"wall_s": wall_s, "cpu_s": cpu_s, "read_s": read_s}
    return numbers | {"memory_mb": memory_mb, "import_s": import_s}


# -- submissions --------------------------------------------------------------------------------------------


def _submit(asked: argparse.Namespace) -> bool:
    """Hand in jobs one by one, each committed."""
    from load_cases import submissions, write_plainly

    count = max(asked.waiting, 100)
    with tempfile.TemporaryDirectory(prefix="live-load-") as folder:
        cpu = time.process_time()
        took_s = sorted(submissions(f"sqlite:///{folder}/store", count))
        cpu_s = time.process_time() - cpu
        cpu, size = time.process_time(), Path(folder, "store").stat().st_size // count
        plain_s = sorted(write_plainly(f"{folder}/plain", count, size))
        plain_cpu_s = time.process_time() - cpu
    p50, p99 = statistics.median(took_s) * 1e3, took_s[int(0.99 * count)] * 1e3
    print(f"submit, SQLite: {count / cpu_s:,.0f} a CPU s; commit p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    plain = f"{count / plain_cpu_s:,.0f} a CPU s; p50 {statistics.median(plain_s) * 1e3:.2f} ms"
    ratio = cpu_s / max(plain_cpu_s, 1e-3)
    print(f"  sqlite3 with {size:,} bytes in one row each {plain}: {ratio:.1f}x of its CPU", flush=True)
    return True


PARTS = {"idle": _idle, "recovery": _recovery, "submit": _submit}

if __name__ == "__main__":
    sys.exit(main())
