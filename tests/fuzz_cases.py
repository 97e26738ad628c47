"""Wrong input of every kind, run as commands in this process: exit 0 or 2, quickly, in little memory.

Shared by tests/cli/test_fuzz.py and bench/fuzz.py.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from fuzz_files import Case, valid_case
from fuzz_mutations import mutate
from trainyard.cli import main
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.policy import Policy
from trainyard.sim import parallel
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.sim.result import Result

MOST_S = 10.0  # of CPU: what else the machine does must not count
MOST_BYTES = 1 << 30
ERROR = "trainyard: error: "


class TooLongError(BaseException):
    """A command took longer than it may; not an Exception, so that nobody catches it."""


@dataclass(frozen=True)
class Verdict:
    """What became of one case."""

    command: str
    outcome: str  # "0", "2" or what is wrong
    wrong: bool
    said: str
    cpu_s: float
    bytes: int
    how: tuple[str, ...]


def made(seed: int, number: int) -> tuple[Case, list[str]]:
    """Return the case of a number, and what is odd about it."""
    draw = Random(f"fuzz-{seed}-{number}")
    case = valid_case(draw)
    return case, mutate(case, draw)


def judged(seed: int, number: int, folder: Path) -> Verdict:
    """Run the case of a number in a folder."""
    case, how = made(seed, number)
    command = case.command
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    before = os.getcwd()
    os.chdir(folder)
    try:
        return run(case, command, tuple(how))
    finally:
        os.chdir(before)
        for path in folder.iterdir():
            _remove(path)


def run(case: Case, command: str, how: tuple[str, ...]) -> Verdict:
    """Run a case where its files are."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")  # as Python's own
    began, had = time.process_time(), _peak_bytes()
    outcome, said = "", ""
    with redirect_stdout(out), redirect_stderr(err), patch.object(parallel, "run_all", _one_by_one):
        try:
            with _limits(), warnings.catch_warnings(), patch.object(sys, "argv", ["trainyard", *case.argv]):
                warnings.simplefilter("always")
                outcome = _exit_code()
        except TooLongError as late:
            outcome, said = "too long", _told(late)
        except BaseException as error:  # whatever it is, it is a finding
            outcome, said = type(error).__name__, _told(error)
    spent, taken = time.process_time() - began, max(0, _peak_bytes() - had)
    printed, told = _text(out), _text(err)
    if outcome in ("0", "2"):
        what = _misprint(outcome, printed, told, "--json" in case.argv)
        outcome, said = (what, f"{printed}\n{told}"[-1500:]) if what else (outcome, told)
        if spent > MOST_S:
            outcome = "too long"
    elif not said:
        said = told
    return Verdict(command, outcome, outcome not in ("0", "2"), said, spent, taken, how)


def _exit_code() -> str:
    try:
        main.run()
    except SystemExit as end:
        return str(end.code or 0)
    return "0"


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def _misprint(outcome: str, out: str, err: str, as_json: bool) -> str:
    """Say what is wrong with what was printed."""
    rest = [line for line in err.splitlines() if not line.startswith(ERROR)]
    if "Traceback" in err or "Traceback" in out:
        return "traceback printed"
    if len(err.splitlines()) - len(rest) != (outcome == "2"):
        return "not one line of error"
    if any("Warning" in line for line in rest):
        return "a warning"
    if outcome == "0" and as_json and out.strip().startswith(("{", "[")):
        try:
            json.loads(out, parse_constant=lambda name: _no(name))
        except ValueError:
            return "not JSON"
    return ""


def _no(name: str) -> None:
    raise ValueError(name)


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-2500:]


@contextmanager
def _limits() -> Iterator[None]:
    """Stop what takes too long, and refuse it memory beyond what it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    former = signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, MOST_S)
    resource.setrlimit(resource.RLIMIT_AS, (_virtual_bytes() + MOST_BYTES, hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _late(_signal: int, _frame: object) -> None:
    raise TooLongError


def _virtual_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _one_by_one(
    cluster: Cluster,
    jobs: Sequence[Job],
    policies: Sequence[Policy],
    rules: Rules | None = None,
    failures: Iterable[Failure] = (),
    progress: object = None,
) -> list[Result]:
    """Stand for `run_all` without other processes."""
    return [Simulator(cluster, jobs, policy, rules, failures).run() for policy in policies]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink()
