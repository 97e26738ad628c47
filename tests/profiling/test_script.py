"""Running a script: what it reports, how it may fail, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import complaint
from trainyard.errors import InputError
from trainyard.profiling import contention, measure, turns
from trainyard.profiling.contention import Usage, lost_share
from trainyard.profiling.measure import Listener
from trainyard.profiling.processes import members
from trainyard.profiling.reports import speed_in
from trainyard.profiling.script import Script
from trainyard.profiling.share import CpuShare, available_cpus, environment
from trainyard.profiling.turns import Turns

REPORTS = "import time\nfor speed in {}: print(speed, 'samples/s'); time.sleep(0.01)\n"


@pytest.fixture(autouse=True)
def _short_windows(monkeypatch):
    monkeypatch.setattr(turns, "WINDOW_S", 0.005)
    # The scripts report fixed speeds: they lose nothing to others, however busy this machine is.
    monkeypatch.setattr(measure, "lost_share", lambda *_: 0.0)


def python(code):
    return [sys.executable, "-c", code]


def measured_command(command, seconds=0.01, **more):
    with Turns(command, seconds, Listener(**more)) as taking:
        return taking.compare([1.0])[1.0]


def measured(code, seconds=0.01, **more):
    return measured_command(python(code), seconds, **more)


def said_of(code, **more):
    return complaint(measured, code, **more)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("line", "speed"),
    [
        ("123.4 samples/s", 123.4),
        ("samples/s: 123.4", 123.4),
        ("step 10 samples/s: 123.4", 123.4),
        ("Throughput=1,234.5 samples/sec (loss 0.1)", 1234.5),
        ("epoch 3: 2e3 Samples / s", 2000),
        ("samples per second = 77", 77),
        (" 99%|####| 512samples/s", 512),
        ("epoch 3 samples/s 77", 77),
        ("step 12, samples/s 77", 77),
        ("samples/s 77", 77),
        ("123.4 samples/s 77 ms", 123.4),
        ("12 samples/s: loss 0.3", 12),
        ("12:01 - 5 samples/s", 5),
        (".5 samples/s", 0.5),
        ("1_000 samples/s", 1000),
        ("1.2k samples/s", 1200),
        ("samples/s: 1.2k, loss 3", 1200),
        ("2M samples/s", 2e6),
        ("\x1b[32m123.4\x1b[0m samples/s", 123.4),
        ("{'samples/s': 123.4}", 123.4),
        ("{'loss': 2.0, 'train_samples_per_second': '55'}", 55),
        ("samples/sec: 5.", 5),
        ("-5 samples/s", None),
        ("samples/s: -5", None),
        ("12,5 samples/s", None),
        ("1,2345 samples/s", None),
        ("1.2.3 samples/s", None),
        ("samples/s=12ms", None),
        ("step 10 samples/s: nan", None),
        ("1e-300 samples/s", None),
        ("1e300 samples/s", None),
        ("0 samples/s", None),
        ("nan samples/s", None),
        ("12 samples/step", None),
        ("123.4 images/s", None),
        ("", None),
    ],
)
def test_lines_that_report_a_speed(line, speed):
    assert speed_in(line) == speed


def test_the_first_reports_do_not_count():
    point = measured(REPORTS.format("[1, 2, 60, 60, 60]"))
    assert (point.cpus, point.samples_per_s, point.reports) == (1.0, pytest.approx(60), 3)


def test_a_measurement_ends_by_itself():
    seen = []
    point = measured(
        REPORTS.format("iter(lambda: 42, 0)"), 0.2, notify=lambda cpus, speed: seen.append((cpus, speed))
    )
    assert point.samples_per_s == 42
    assert set(seen) == {(1.0, 42)}


def test_reports_may_be_on_stderr_and_without_line_ends():
    point = measured("import sys\nfor speed in range(9): sys.stderr.write(f'\\r{speed} samples/s')\n")
    assert point.samples_per_s > 0


def test_what_a_script_is_told():
    code = "import os\nfor _ in range(9): print(os.environ['TRAINYARD_CPUS'], 'samples/s')"
    assert measured(code).samples_per_s == 1
    assert environment(1.5)["TRAINYARD_CPUS"] == "1.5"
    assert environment(1.5)["OMP_NUM_THREADS"] == "2"
    code = "import os\nfor _ in range(9): print(len(os.sched_getaffinity(0)) + 0.5, 'samples/s')"
    assert measured(code).samples_per_s == 1.5
    assert len(available_cpus()) == len(os.sched_getaffinity(0))


def test_a_crash_shows_its_last_line():
    said = said_of(
        "import sys\nprint('1 samples/s')\nsys.stderr.write('Traceback\\n')\nraise ValueError('boom')"
    )
    assert "exited with status 1: ValueError: boom; make it run by itself first" in said
    assert said.startswith("with 1 CPUs '")
    assert "was killed by SIGKILL" in said_of("import os; os.kill(os.getpid(), 9)")


def test_silence_is_explained():
    how = "print a line such as '123.4 samples/s' about once a second"
    assert said_of("print('hello')").endswith(f"ended without reporting a speed; {how}")
    silent = said_of("import time; time.sleep(60)", patience_s=0.2)
    assert silent.endswith(f"reported no speed for 0.2 s; {how}")


class Lines:
    """Stands in for a script that says a line every second of a clock of its own."""

    group, paused, name = 0, False, "train"

    def __init__(self, said, monkeypatch):
        self.said, self.now_s = said, 0.0
        monkeypatch.setattr(measure, "time", self)
        monkeypatch.setattr(measure, "Script", lambda command, share: self)
        monkeypatch.setattr(measure, "usage", lambda group, cpus: Usage(self.now_s, 0.0, 0.0, {}))

    def monotonic(self):
        return self.now_s

    def lines(self):
        for line in self.said:
            self.now_s += 1.0
            yield line


def heard(said, monkeypatch):
    """Listen to lines, one a second; return when waiting was said, the complaint and when it came."""
    waited, script = [], Lines(said, monkeypatch)
    listener = Listener(waiting=lambda *args: waited.append(args), patience_s=25.0)
    with pytest.raises(InputError) as caught:
        measure.Copy(["train"], 2.0, listener).turn(1.0)
    return waited, str(caught.value), script.now_s


def test_other_lines_give_a_silent_script_longer(monkeypatch):
    _, complained, after_s = heard([""] * 99, monkeypatch)
    assert complained.startswith("'train' reported no speed for 25 s; ")
    assert after_s == 26
    _, complained, after_s = heard(["loading"] * 99, monkeypatch)
    assert complained.startswith("'train' reported no speed for 50 s; ")
    assert after_s == 51


def test_waiting_is_said(monkeypatch):
    waited, _, _ = heard([""] * 5 + ["7 samples/s"] + [""] * 99, monkeypatch)
    assert waited == [(2.0, 10.0), (2.0, 20.0)]


def test_too_few_reports_are_explained():
    said = said_of("print('5 samples/s\\n6 samples/s')")
    assert "ended after 2 reports, of which the first 2 are warm-up; let it run longer" in said


def test_commands_that_cannot_run(tmp_path):
    with pytest.raises(InputError, match="command 'no-such-thing' not found; check its name and the PATH"):
        measured_command(["no-such-thing"])
    with pytest.raises(InputError, match="cannot be run: Permission denied; check it"):
        measured_command([str(tmp_path)])


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(60)"])
print(f"{os.getpid()} {child.pid}", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_nothing_stays(monkeypatch, error):
    monkeypatch.setattr("trainyard.profiling.script.GRACE_S", 0.2)
    processes = []
    try:
        with Script(python(STUBBORN), CpuShare(1.0)) as script:
            processes = next(line for line in script.lines() if line).split()
            assert all(map(is_alive, processes))
            if error:
                raise error
    except KeyboardInterrupt:
        pass
    deadline = time.monotonic() + 10
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(processes) == 2
    assert not any(map(is_alive, processes))


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_script_starts_leaves_nothing(monkeypatch, kind):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            started.append(self.pid)
            os.kill(os.getpid(), kind)

    before = signal.signal(kind, signal.default_int_handler)
    monkeypatch.setattr("trainyard.profiling.script.subprocess.Popen", Interrupted)
    try:
        with pytest.raises(KeyboardInterrupt), Script(["sleep", "60"], CpuShare(1.0)):
            pytest.fail("the signal was lost")
        assert signal.getsignal(kind) is signal.default_int_handler
    finally:
        signal.signal(kind, before)
    assert len(started) == 1
    assert not is_alive(started[0])


def test_a_crash_leaves_no_children_either():
    code = "import subprocess, sys\nsubprocess.Popen(['sleep', '60'])\nsys.exit('over')"
    with Script(python(code), CpuShare(1.0)) as script:
        list(script.lines())
        assert script.ending() == "exited with status 1: over"
        group = script.group
    deadline = time.monotonic() + 10
    while any(is_alive(process) for process, _ in members(group)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(is_alive(process) for process, _ in members(group))


def window(ran_s, all_s, threads, cpus=1.0):
    start = Usage(0.0, 5.0, 9.0, dict.fromkeys(range(len(threads)), (3.0, 3.0)))
    times = {thread: (3.0 + ran, 3.0 + waited) for thread, (ran, waited) in enumerate(threads)}
    return lost_share(start, Usage(1.0, 5.0 + ran_s, 9.0 + all_s, times), cpus)


@pytest.mark.parametrize(
    ("ran_s", "all_s", "threads", "cpus", "lost"),
    [
        (1.0, 1.0, [(1.0, 0.0)], 1.0, 0.0),  # alone
        (0.6, 1.0, [(0.6, 0.4)], 1.0, 0.4),  # one thread beside others
        (0.6, 2.0, [(0.6, 0.4)], 2.0, 0.4),  # more CPUs do not help one thread
        (1.0, 1.0, [(0.5, 0.5), (0.5, 0.5)], 1.0, 0.0),  # waiting for each other
        (0.6, 1.0, [(0.3, 0.7), (0.3, 0.7)], 1.0, 0.4),  # both
        (0.01, 1.0, [(0.01, 0.04)], 1.0, 0.0),  # mostly asleep
        (0.0, 1.0, [], 1.0, 0.0),  # ended
    ],
)
def test_what_others_took(ran_s, all_s, threads, cpus, lost):
    assert window(ran_s, all_s, threads, cpus) == pytest.approx(lost)


def test_usage_of_this_process():
    before = contention.usage(os.getpgrp(), available_cpus())
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    after = contention.usage(os.getpgrp(), available_cpus())
    assert after.at_s > before.at_s
    assert after.ran_s >= before.ran_s
