"""Run tests of a copy of the checkout, each trial in a process of its own that may go wrong in every way."""

from __future__ import annotations

import gc
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
from functools import cache
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
SLOWER, MORE_S = 3.0, 4.0  # a change that makes a test take so many times as long, and more, is noticed
DIED = "time limit or killed"
IN_BODY = "?"  # the change is not in a function, so the module must be imported anew
NO_IMPORT = "it cannot be imported"

Tests = dict[str, float]  # the seconds of CPU that each usually takes, in the order to run them


class Trial(NamedTuple):
    """A changed function, and the tests that should notice: those of its room, and the others."""

    file: str
    function: str
    source: bytes
    near: Tests
    far: Tests


def limit(usual: float) -> float:
    """Return the seconds of CPU after which a test is said to take too long."""
    return MORE_S + SLOWER * usual


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
    """Change the file, import all anew and run the tests; return the one that failed, or nothing."""
    changed = copy / "src" / "trainyard" / trial.file
    before = changed.read_bytes()
    named = {test: usual for test, usual in trial.near.items() if changed.stem in test.split("::")[0]}
    others = {test: usual for test, usual in trial.near.items() if test not in named}
    for tests in (named, others, trial.far):  # the fewer files, the less there is to import
        changed.write_bytes(trial.source)
        os.utime(changed, (0, hash(trial.source) % 10**9))  # else a compiled file may look up to date
        try:
            caught = _run_anew(copy, tests) if tests else ""
        finally:
            changed.write_bytes(before)
            os.utime(changed, (0, 0))
        if caught and (caught == NO_IMPORT or passes_unchanged(copy, caught, tests[caught])):
            return caught
    return ""


@cache
def passes_unchanged(copy: Path, test: str, usual: float) -> bool:
    """Whether a test passes without any change, else it shows nothing."""
    return not _run_anew(copy, {test: usual})


def _run_anew(copy: Path, tests: Tests) -> str:
    """Import everything and run tests; return the one that failed, or nothing."""
    some = Some(list(tests), copy / "out" / "now")
    some.now.write_text(NO_IMPORT)

    def work() -> bool:
        files = sorted({test.split("::")[0] for test in tests})
        code = pytest.main([*OPTIONS, *QUIET, "-x", *files], plugins=[some])
        return code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

    return some.now.read_text() if apart(copy, work, START_S + sum(map(limit, tests.values()))) else ""


def run_changed_functions(copy: Path, trials: list[Trial]) -> list[str]:
    """Collect the tests of all trials once; return of each the test that failed, nothing, or IN_BODY."""
    stand = Stand(copy, trials)
    files = sorted({test.split("::")[0] for trial in trials for test in (*trial.near, *trial.far)})

    def work() -> list[str]:
        pytest.main([*OPTIONS, *QUIET, *files], plugins=[stand])
        return stand.answers

    seconds = 10 * START_S + sum(sum(map(limit, (trial.near | trial.far).values())) for trial in trials)
    answers = apart(copy, work, seconds)
    if isinstance(answers, str):
        raise RuntimeError(f"the tests cannot be collected: {answers}")
    return list(answers)


class Stand(Steady):
    """Instead of running all tests once, runs those of each trial, in a copy of the process."""

    def __init__(self, copy: Path, trials: list[Trial]) -> None:
        self.copy = copy
        self.trials = trials
        self.answers: list[str] = []
        self.passes: dict[str, bool] = {}  # without any change
        self._now = copy / "out" / "now"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try one after the other."""
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.freeze()  # else every copy of the process looks through all of it, and so copies the memory
        for trial in self.trials:
            self.answers.append(self._caught(session, items, trial))
            print(trial.file, trial.function, self.answers[-1] or "lives", flush=True)  # in the log
        return True

    def _caught(self, session: pytest.Session, items: dict[str, pytest.Item], trial: Trial) -> str:
        """Return the first test that fails with the change and passes without it."""
        tests = {test: usual for test, usual in (trial.near | trial.far).items() if test in items}
        while (caught := self._run(session, items, trial, tests)) not in ("", IN_BODY):
            if caught not in self.passes:
                alone = {caught: tests[caught]}
                self.passes[caught] = not self._run(session, items, None, alone)
            if self.passes[caught]:
                break
            del tests[caught]
        return caught

    def _run(
        self, session: pytest.Session, items: dict[str, pytest.Item], trial: Trial | None, tests: Tests
    ) -> str:
        self._now.write_text("")

        def work() -> str:
            if trial is not None and not put_in(trial.file, trial.function, trial.source):
                return IN_BODY
            return _first_failure(session, [(items[test], usual) for test, usual in tests.items()], self._now)

        seconds = START_S + sum(map(limit, tests.values()))
        answer = apart(self.copy, work, seconds, self.copy / "out" / "trial")
        if answer in ("", IN_BODY):
            return str(answer)
        if not (test := self._now.read_text()):
            raise RuntimeError(f"no test was running: {answer}")
        return test


def _first_failure(session: pytest.Session, items: list[tuple[pytest.Item, float]], now: Path) -> str:
    """Run tests until one fails; one that takes too long ends the process."""
    following = [*(item for item, _ in items[1:]), None][: len(items)]
    for (item, usual), after in zip(items, following, strict=True):
        now.write_text(item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, limit(usual))
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit(usual))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
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
