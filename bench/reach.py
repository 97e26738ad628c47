"""Which test reaches which function? A plugin for pytest that notes it, and one that runs only some tests.

Functions are named `core/yard.py:Yard.decide`. What is inside a function counts as the function.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

Reached = dict[str, tuple[float, list[str]]]  # test -> its seconds, the functions it reaches


def function_name(code: CodeType) -> str:
    """Return the name of a function; of what is inside it, that of the outer one."""
    return code.co_qualname.split(".<locals>")[0].split(".<")[0]


class Steady:
    """Makes hypothesis draw the same examples in every run, and write none of them down."""

    def pytest_sessionstart(self) -> None:
        """Begin from the profile that conftest.py chose."""
        from hypothesis import settings

        settings.register_profile("steady", settings(), derandomize=True, database=None)
        settings.load_profile("steady")


class Watch(Steady):
    """Notes what every test that passes reaches."""

    def __init__(self, package: Path, rooms: Collection[str]) -> None:
        self.reached: Reached = {}
        self.failed: list[str] = []
        self._package, self._rooms = f"{package}/", tuple(f"{room}/" for room in rooms)
        self._names: dict[CodeType, str | None] = {}
        self._seen: set[str] = set()

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code not in self._names:
            self._names[code] = self._name(code)
        if name := self._names[code]:
            self._seen.add(name)

    def _name(self, code: CodeType) -> str | None:
        file = code.co_filename.removeprefix(self._package)
        return f"{file}:{function_name(code)}" if file.startswith(self._rooms) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Listen while one test runs, its fixtures included."""
        self._seen = set()
        began = time.process_time()
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            if item.nodeid not in self.failed:
                self.reached[item.nodeid] = (time.process_time() - began, sorted(self._seen))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that does not pass as things are shows nothing."""
        if report.outcome != "passed":
            self.failed.append(report.nodeid)


class Some(Steady):
    """Runs these tests and no others, in this order, and writes down which one it is at."""

    def __init__(self, tests: list[str], now: Path) -> None:
        self.rank = {test: at for at, test in enumerate(tests)}
        self.now = now

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others."""
        items[:] = sorted((item for item in items if item.nodeid in self.rank), key=self._place)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """If it fails, or the process dies, this is the test."""
        self.now.write_text(nodeid)

    def _place(self, item: pytest.Item) -> int:
        return self.rank[item.nodeid]


def tests_for(file: str, function: str, room: str, reached: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the tests that reach a function: those of its room, and the others; the quick ones first.

    Tests named for the file come before the others of the room. The body of a module or a class, and a
    function that no test is known to reach, are tried with all tests that reach anything in the file.
    """
    tests = [test for test, (_, names) in reached.items() if f"{file}:{function}" in names]
    if not tests:
        tests = [
            test for test, (_, names) in reached.items() if any(name.startswith(f"{file}:") for name in names)
        ]
    stem, folder = Path(file).stem, f"tests/{room}/"
    tests.sort(key=lambda test: (stem not in test.split("::")[0], reached[test][0]))
    near = [test for test in tests if test.startswith(folder)]
    return near, sorted(set(tests) - set(near), key=lambda test: (reached[test][0], test))
