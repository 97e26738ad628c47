"""The tool that changes the source to see whether tests notice: what it changes, and how it puts it in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from changes import changes_in  # noqa: E402
from equivalent import EQUIVALENT  # noqa: E402
from reach import tests_for as reaching  # noqa: E402
from swap import put_in  # noqa: E402
from trainyard.state import room  # noqa: E402

SOURCE = '''
"""Words stay, 1 < 2."""
LIMIT: int = 3

def f(a: int, b: int) -> bool:
    """Words stay too."""
    assert a < b
    if a < b and not b:
        raise ValueError(f"{a + 1} is too small")
    g(a, b)
    return min(a, -b) == LIMIT

def g(a, b) -> None:
    for _ in zip(a, b, strict=True):
        a.total += 1

class C:
    def never(self, a: int = ...) -> None: ...

    def h(self, a):
        def inner():
            return -a
        return inner
'''


def test_one_change_for_each_thing_that_can_be_wrong(tmp_path):
    (tmp_path / "sample.py").write_text(SOURCE)
    found = [(change.kind, change.function, change.after) for change in changes_in(tmp_path, "sample.py")]
    expected = [
        ("constant", "", "LIMIT: int = 4"),
        ("and/or", "f", "if (a < b or not b):"),
        ("comparison", "f", "if a <= b and not b:"),
        ("condition negated", "f", "if (not (a < b and (not b))):"),
        ("not removed", "f", "if a < b and (b):"),
        ("dropped", "f", "pass"),
        ("arguments swapped", "f", "g(b, a)"),
        ("dropped", "f", "pass"),
        ("answer", "f", "return not (min(a, -b) == LIMIT)"),
        ("called", "f", "return max(a, -b) == LIMIT"),
        ("comparison", "f", "return min(a, -b) != LIMIT"),
        ("sign", "f", "return min(a, (b)) == LIMIT"),
        ("early return", "g", "return"),
        ("arguments swapped", "g", "for _ in zip(b, a, strict=True):"),
        ("arithmetic", "g", "a.total -= 1"),
        ("dropped", "g", "pass"),
        ("constant", "g", "a.total += 2"),
        ("sign", "C.h", "return (a)"),
    ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    "file", ["state/queue.py", "policy/place/servers.py", "policy/tune/synergy/classes.py"]
)
def test_every_change_compiles(file):
    package = ROOT / "src" / "trainyard"
    source = (package / file).read_bytes()
    changes = changes_in(package, file)
    assert len(changes) > 5
    for change in changes:
        assert change.applied(source) != source
        compile(change.applied(source), file, "exec")


def test_what_is_said_to_be_equivalent_is_a_change_of_the_present_source():
    package = ROOT / "src" / "trainyard"
    every = {
        (c.file, c.before, c.after) for name in {k[0] for k in EQUIVALENT} for c in changes_in(package, name)
    }
    assert EQUIVALENT.keys() - every == set()
    assert all(EQUIVALENT.values())


@pytest.mark.interpreted
def test_a_changed_function_takes_the_place_of_the_imported_one(monkeypatch):
    total, source = room.total, (ROOT / "src" / "trainyard" / "state" / "room.py").read_bytes()
    monkeypatch.setattr(total, "__code__", total.__code__)  # put back afterwards
    assert total([0, 1, 2]) == 3
    assert put_in("state/room.py", "total", source.replace(b"sum([f * mask", b"sum([f + mask"))
    assert total([0, 1, 2]) == 5
    assert not put_in("state/room.py", "first", source)  # nothing changed there
    assert not put_in("state/room.py", "", source)


def test_near_tests_come_first_and_quick_ones_before_slow_ones():
    reached = {
        "tests/sim/test_a.py::far": (1.0, ["state/room.py:total"]),
        "tests/sim/test_a.py::quick": (0.1, ["state/room.py:total"]),
        "tests/state/test_queue.py::other": (0.1, ["state/room.py:total", "state/queue.py:Queue.add"]),
        "tests/state/test_room.py::slow": (2.0, ["state/room.py:total"]),
        "tests/state/test_room.py::none": (0.1, ["state/room.py:first"]),
    }
    near, far = reaching("state/room.py", "total", "state", reached)
    assert near == ["tests/state/test_room.py::slow", "tests/state/test_queue.py::other"]
    assert far == ["tests/sim/test_a.py::quick", "tests/sim/test_a.py::far"]
    assert reaching("state/queue.py", "", "state", reached)[0] == ["tests/state/test_queue.py::other"]
    assert reaching("state/lifecycle.py", "is_over", "state", reached) == ([], [])
