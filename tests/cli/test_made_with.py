"""What a report says of its own making."""

from __future__ import annotations

import sys
from functools import partial

from trainyard.cli.made_with import made_with
from trainyard.cli.options import read_run

FILES = {"cluster": "c.yaml", "jobs": "j.csv"}


def test_the_seed_is_named_and_what_differs_from_defaults(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/bin/trainyard", "compare", "--policies", "fifo,las(queues=2)"])
    run = partial(read_run, **FILES, seed=0, round_s=300.0, restart_s=None, mtbf_h=12.5, repair_h=None)
    assert made_with(run) == {
        "--cluster": "c.yaml",
        "--jobs": "j.csv",
        "--seed": "0",
        "--round-s": "300.0",
        "--mtbf-h": "12.5",
        "command": "trainyard compare --policies 'fifo,las(queues=2)'",
    }
