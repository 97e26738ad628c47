"""Run tests of a copy of the checkout, each trial in a process of its own that may go wrong in every way."""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reach import Some, Steady, Watch
from swap import put_in

LEFT_BEHIND = (".git", ".venv*", "out", "dist", "__pycache__", ".*_cache", ".hypothesis")
# What all tests import, so that a process that begins here begins quickly. Nothing that is changed.
READY = """numpy scipy.optimize scipy.sparse highspy pydantic yaml typer rich.table
    hypothesis.strategies hypothesis.stateful"""
OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not torch", "--basetemp=out/tmp")
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is imported already
MEMORY = 4 << 30
PATIENCE = 10  # times as long by the clock as of CPU: the machine may be busy
START_S = 20.0  # of CPU to import and collect everything
DIED = "time limit or killed"
IN_BODY = "?"  # the change is not in a function, so the module must be imported anew


class Trial(NamedTuple):
    """A changed function, and the tests that should notice."""

    file: str
    function: str
    source: bytes
    tests: list[str]
    seconds: float  # of CPU that they may take


def copy_of(root: Path, to: Path) -> Path:
    """Copy the checkout without what it makes."""
    shutil.copytree(root, to, ignore=shutil.ignore_patterns(*LEFT_BEHIND), symlinks=True)
    (to / "out").mkdir()
    return to


def get_ready() -> None:
    """Import what all tests need; one thread, for the process will be copied."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    for name in READY.split():
        importlib.import_module(name)


def watch(copy: Path, file: str, rooms: tuple[str, ...], seconds: float) -> tuple[dict[str, Any], list[str]]:
    """Run the tests of one file; return what each reaches, and those that do not pass."""

    def work() -> tuple[dict[str, Any], list[str]]:
        plugin = Watch(copy / "src" / "trainyard", rooms)
        pytest.main([*OPTIONS, *QUIET, file], plugins=[plugin])
        return plugin.reached, plugin.failed

    answer = apart(copy, work, seconds)
    return ({}, [f"{file}: {answer}"]) if isinstance(answer, str) else (answer[0], answer[1])


def run_changed_file(copy: Path, trial: Trial) -> str:
    """Change the file, import all anew and run the tests; return how they failed, or nothing."""
    changed = copy / "src" / "trainyard" / trial.file
    before = changed.read_bytes()

    def work() -> str:
        code = pytest.main([*OPTIONS, *QUIET, "-x", *_files([trial])], plugins=[Some(trial.tests)])
        return "" if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else f"exit {int(code)}"

    changed.write_bytes(trial.source)
    os.utime(changed, (0, hash(trial.source) % 10**9))  # else a compiled file may look up to date
    try:
        return str(apart(copy, work, START_S + trial.seconds))
    finally:
        changed.write_bytes(before)
        os.utime(changed, (0, 0))


def run_changed_functions(copy: Path, trials: list[Trial]) -> list[str]:
    """Collect the tests of all trials once; return of each how they failed, nothing, or IN_BODY."""
    stand = Stand(copy, trials)

    def work() -> list[str]:
        pytest.main([*OPTIONS, *QUIET, *_files(trials)], plugins=[stand])
        return stand.answers

    answers: list[str] = apart(copy, work, 3 * START_S + sum(trial.seconds for trial in trials))
    return answers


def _files(trials: list[Trial]) -> list[str]:
    return sorted({test.split("::")[0] for trial in trials for test in trial.tests})


class Stand(Steady):
    """Instead of running all tests once, runs those of each trial, in a copy of the process."""

    def __init__(self, copy: Path, trials: list[Trial]) -> None:
        self.copy = copy
        self.trials = trials
        self.answers: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try one after the other."""
        items = {item.nodeid: item for item in session.items}
        for trial in self.trials:
            some = [items[test] for test in trial.tests if test in items]
            work = partial(_try, session, trial, some)
            self.answers.append(str(apart(self.copy, work, trial.seconds, self.copy / "out" / "trial")))
        return True


def _try(session: pytest.Session, trial: Trial, items: list[pytest.Item]) -> str:
    if not put_in(trial.file, trial.function, trial.source):
        return IN_BODY
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return ""


def apart(copy: Path, work: Callable[[], Any], seconds: float, place: Path | None = None) -> Any:
    """Do something in a copy of this process, in this folder; return what it returns, or how it died."""
    answer = (place or copy).with_suffix(".answer")
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _be_the_child(copy, work, answer, seconds)
    return _wait(child, answer, time.monotonic() + PATIENCE * seconds)


def _be_the_child(copy: Path, work: Callable[[], Any], answer: Path, seconds: float) -> None:
    """Never return."""
    try:
        os.setpgid(0, 0)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        limit = int(used + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(copy)
        silence = os.open(answer.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.environ["PYTHONPATH"] = f"{copy / 'src'}"
        sys.path[:0] = [str(copy / "src"), str(copy / "tests")]
        answer.write_text(json.dumps(work()))
    except BaseException as error:
        answer.write_text(json.dumps(f"raised {error!r}"))
    finally:
        os._exit(0)


def _wait(child: int, answer: Path, until: float) -> Any:
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.02)
    with suppress(ProcessLookupError):  # whatever it started and left behind
        os.killpg(child, signal.SIGKILL)
    return json.loads(answer.read_text()) if answer.exists() else DIED
