"""Copies of a script take turns: one runs at a time, all are ended; if they cannot, each runs alone."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

import pytest

from quota_looks import Looks
from trainyard.errors import InputError
from trainyard.profiling import measure, turns
from trainyard.profiling.measure import Listener, Window
from trainyard.profiling.profiler import Profiled, profile_script, remarks
from trainyard.profiling.turns import MEAN, Turns

BEATS = """
import os, sys, time
cpus = float(os.environ["TRAINYARD_CPUS"])
beats = open(sys.argv[1], "a", buffering=1)
print("1 samples/s", "2 samples/s", sep="\\n")
for n in range(10**6):
    beats.write(f"{time.monotonic()} {os.getpid()}\\n")
    if n % 5 == 0: print(100 * cpus, "samples/s")
    time.sleep(0.004)
"""


@pytest.fixture
def undisturbed(monkeypatch):
    """Scripts that report fixed speeds lose nothing to others, however busy this machine is."""
    monkeypatch.setattr(measure, "lost_share", lambda *_: 0.0)


@pytest.fixture
def beats(tmp_path, monkeypatch, undisturbed):
    monkeypatch.setattr(turns, "WINDOW_S", 0.05)
    return tmp_path / "beats"


def beating(beats, head=""):
    return [sys.executable, "-c", head + BEATS, str(beats)]


def beaten(beats):
    """Return the processes in the order of their heart beats."""
    rows = sorted((float(at), int(pid)) for at, pid in map(str.split, beats.read_text().splitlines()))
    return [pid for _, pid in rows]


def all_ended(processes):
    deadline = time.monotonic() + 10
    while (
        alive := [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    ) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive


def test_one_runs_at_a_time(beats):
    told = []
    with Turns(beating(beats), 0.3, Listener(lambda cpus, _: told.append(cpus))) as taking:
        points = taking.compare([0.5, 0.9, 1.0])
        assert [cpus for cpus, _ in itertools.groupby(told)][:7] == [0.5, 0.9, 1.0, 0.9, 0.5, 0.9, 1.0]
        rounds = max(number for number, _ in taking._windows)
        assert len(taking._windows) == 3 * rounds
        order = beaten(beats)
    assert len(set(order)) == 3
    assert len([pid for pid, _ in itertools.groupby(order)]) <= 3 * rounds
    assert {cpus: point.samples_per_s for cpus, point in points.items()} == pytest.approx(
        {0.5: 50, 0.9: 90, 1.0: 100}
    )
    assert taking.alone == ""
    assert all_ended(set(order))


def test_only_counts_under_examination_are_alive(beats):
    with Turns(beating(beats), 0.1) as taking:
        taking.compare([0.5, 1.0])
        first = set(beaten(beats))
        points = taking.compare([0.5, 0.7])
        assert len(taking._copies) == 2
        processes = set(beaten(beats))
        assert len(processes) == 3
        assert sum(map(os.path.exists, (f"/proc/{pid}" for pid in first))) == 1
    assert sorted(points) == [0.5, 0.7, 1.0]
    assert all_ended(processes)


@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_all_are_ended_whatever_happens(beats, error, count):
    told = []  # whose turn it was, one after the other

    def notify(cpus, _):
        if told[-1:] != [cpus]:
            told.append(cpus)
        if len(told) == count:
            raise error

    with pytest.raises(error), Turns(beating(beats), 5.0, Listener(notify)) as taking:
        taking.compare([0.5, 0.9, 1.0])
    assert all_ended(set(beaten(beats)) if beats.exists() else set())
    assert taking._copies == {}
    assert told == [0.5, 0.9, 1.0, 0.9, 0.5, 0.9][:count]


ONE_ONLY = """
import fcntl, sys
lock = open(sys.argv[1] + ".lock", "w")
try: fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError: sys.exit("no room for two")
"""


def test_what_cannot_live_beside_another_is_measured_alone(beats):
    found = profile_script(beating(beats, ONE_ONLY), [0.5, 0.9, 1.0], 0.1)
    assert {point.cpus: point.samples_per_s for point in found.curve.points} == pytest.approx(
        {0.5: 50, 0.9: 90, 1.0: 100}
    )
    assert found.alone.endswith("exited with status 1: no room for two; make it run by itself first")
    assert any(line.startswith("copies could not take turns, so each") for line in remarks(found, None))
    assert not any("take turns" in line for line in remarks(Profiled(found.profile, found.curve), None))
    assert all_ended(set(beaten(beats)))


def test_a_script_that_fails_alone_too_is_refused(beats):
    fails = "import os, sys\nif os.environ['TRAINYARD_CPUS'] != '0.5': sys.exit('no')\n"
    with (
        pytest.raises(
            InputError, match=r"with 1 CPUs '(.|\n)*exited with status 1: no; make it run by itself first"
        ),
        Turns(beating(beats, fails), 0.1) as taking,
    ):
        taking.compare([0.5, 1.0])
    assert all_ended(set(beaten(beats)))


class Timed:
    """A copy that makes 100 samples a second of its turns, on a clock that only turns move."""

    now_s, means, ended = 0.0, False, False

    def __init__(self, command, cpus, listener):
        self.ran_s = 0.0

    def start(self):
        self.began_s = Timed.now_s

    def turn(self, least_s):
        Timed.now_s += least_s
        self.ran_s += least_s
        ran = self.ran_s / (Timed.now_s - self.began_s) if self.means else 1.0
        return Window(100 * ran, 0.0, 9, least_s)

    def rest(self):
        pass

    pause = go_on = end = rest


@pytest.mark.parametrize(("means", "alone"), [(True, MEAN), (False, "")])
def test_means_over_pauses_are_no_use(monkeypatch, means, alone):
    """A script that reports its mean speed since it began is measured alone; one that does not, in turns."""
    monkeypatch.setattr(turns, "Copy", Timed)
    monkeypatch.setattr(Timed, "now_s", 0.0)
    monkeypatch.setattr(Timed, "means", means)
    with Turns(["train"], 5.0) as taking:
        points = taking.compare([0.8, 0.9, 1.0])
    assert taking.alone == alone
    assert [point.samples_per_s for point in points.values()] == pytest.approx([100] * 3)


@pytest.mark.usefixtures("undisturbed")
def test_a_quota_holds_in_turns(tmp_path, monkeypatch):
    """A process that never rests, and writes down its own CPU clock."""
    code = (
        f"import os, time\nos.chdir({str(tmp_path)!r})\n"
        "clock = open(os.environ['TRAINYARD_CPUS'], 'w', buffering=1)\n"
        "while True:\n"
        "  until = time.process_time() + 0.02\n"
        "  while time.process_time() < until: pass\n"
        "  print(until, file=clock)\n"
        "  print('5 samples/s')"
    )
    monkeypatch.setattr(turns, "WINDOW_S", 0.3)
    looks = Looks(monkeypatch, 0.4)
    with Turns([sys.executable, "-c", code], 2.0) as taking:
        taking.compare([0.4, 1.0])
        assert taking.alone == ""
        used_s = float((tmp_path / "0.4").read_text().split()[-1])
    assert 0.1 < used_s < 0.4 * looks.seconds + looks.late_s + 0.1  # it runs on while the quota comes late


@pytest.mark.usefixtures("undisturbed")
def test_a_script_that_ends_by_itself_is_run_once(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "WINDOW_S", 0.02)
    code = (
        f"import time; open({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
        "for _ in range(9): print('5 samples/s'); time.sleep(0.01)"
    )
    with Turns([sys.executable, "-c", code], 60.0) as taking:
        points = taking.compare([0.9, 1.0])
    assert [point.samples_per_s for point in points.values()] == pytest.approx([5, 5])
    assert (tmp_path / "runs").read_text() == "xx"
