"""The training scripts of examples/: they run, and report their speed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainyard.profiling.reports import speed_in

SCRIPTS = Path(__file__).resolve().parents[1] / "examples" / "training"
METER = "from meter import Meter; import time; m = Meter(); time.sleep(0.6); m.add(30)"


def test_the_meter_prints_what_the_profiler_reads():
    args = {"capture_output": True, "text": True, "check": True, "cwd": SCRIPTS}
    said = subprocess.run([sys.executable, "-c", METER], **args).stdout
    assert 0 < speed_in(said) <= 50


@pytest.mark.torch
@pytest.mark.parametrize("name", ["hungry", "light"])
def test_scripts_train(name):
    args = [sys.executable, SCRIPTS / f"{name}.py", "--steps", "2", "--batch", "2"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
