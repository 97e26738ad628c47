"""Run tests of a copy of the checkout in a process of their own that may go wrong in every way."""

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
from pathlib import Path
from typing import Any

import pytest

from reach import Some, Watch

LEFT_BEHIND = (".git", ".venv*", "out", "dist", "__pycache__", ".*_cache", ".hypothesis")
# What all tests import, so that a process that begins here begins quickly. Nothing that is changed.
READY = """numpy scipy.optimize scipy.sparse highspy pydantic yaml typer rich.table
    hypothesis.strategies hypothesis.stateful"""
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not torch")
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is imported already
MEMORY = 4 << 30
PATIENCE = 8  # times as long by the clock as of CPU: the machine may be busy
DIED = "time limit or killed"


def copy_of(root: Path, to: Path) -> Path:
    """Copy the checkout without what it makes."""
    return Path(shutil.copytree(root, to, ignore=shutil.ignore_patterns(*LEFT_BEHIND), symlinks=True))


def get_ready() -> None:
    """Import what all tests need; one thread, for the process will be copied."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    for name in READY.split():
        importlib.import_module(name)


def run_some(copy: Path, tests: list[str], seconds: float) -> str:
    """Run these tests, for so many seconds of CPU at most; return what failed first, or nothing."""
    plugin = Some(tests)
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))

    def work() -> str:
        code = pytest.main([*OPTIONS, *QUIET, *files], plugins=[plugin])
        return "" if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else f"exit {int(code)}"

    return str(apart(copy, work, seconds))


def watch(copy: Path, file: str, rooms: tuple[str, ...], seconds: float) -> tuple[dict[str, Any], list[str]]:
    """Run the tests of one file; return what each reaches, and those that do not pass."""

    def work() -> tuple[dict[str, Any], list[str]]:
        plugin = Watch(copy / "src" / "trainyard", rooms)
        pytest.main([*OPTIONS[1:], *QUIET, file], plugins=[plugin])
        return plugin.reached, plugin.failed

    answer = apart(copy, work, seconds)
    return ({}, [f"{file}: {answer}"]) if isinstance(answer, str) else (answer[0], answer[1])


def apart(copy: Path, work: Callable[[], Any], seconds: float) -> Any:
    """Do something in a copy of this process, in this folder; return what it returns, or how it died."""
    answer = copy.with_suffix(".answer")
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
        limit = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(copy)
        silence = os.open(copy.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.environ["PYTHONPATH"] = f"{copy / 'src'}"
        sys.path[:0] = [str(copy / "src"), str(copy / "tests")]
        answer.write_text(json.dumps(work()))
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
