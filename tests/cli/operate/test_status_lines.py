"""What `status` and `nodes` say of trouble that a calm controller does not have."""

from __future__ import annotations

from trainyard.cli.operate.nodes import row
from trainyard.cli.operate.status import lines
from trainyard.cli.shown.times import clock

NOW = 1_700_000_000.0
STATUS = {
    "version": "0.7.0", "pid": 4711, "host": "gpu1", "epoch": 8, "limits": "cpu affinity only",
    "store": {"url": "x", "kind": "postgresql", "bytes": None, "trouble": None, "trouble_s": 0.0},
    "backend": {"name": "local", "nodes": 1, "silent_s": 0.0, "silence": "", "trouble": {}},
    "policy": "fifo", "paused": False, "jobs": {"running": 1200, "held": 0}, "events": 5, "plans_refused": 0,
    "refused": None, "clock_ahead_s": 0.0, "started_s": NOW - 3 * 86400, "now_s": NOW, "notes": [],
}  # fmt: skip
NODE = {
    "node": "gpu2", "state": "draining", "gpu_type": "A100", "gpus": 8, "gpus_used": 2, "gpus_broken": [],
    "cpus": 24.0, "cpus_used": 6.0, "memory_gb": 500.0, "memory_gb_used": 125.0, "jobs": ["16", "18"],
}  # fmt: skip


def test_a_calm_controller():
    assert list(lines(STATUS)) == [
        "controller 0.7.0 on gpu1, pid 4711, up 3 d, epoch 8; "
        "store postgresql; backend local, 1 node, answers",
        "policy fifo; jobs: 1,200 running",
        "limits: cpu affinity only",
    ]


def test_a_controller_in_trouble():
    store = STATUS["store"] | {"trouble": "database is locked", "bytes": 41_300_000}
    backend = STATUS["backend"] | {"silent_s": 40.0, "silence": "no answer", "trouble": {"start 17": "EIO"}}
    refused = {"time_s": NOW, "why": "node gpu9 is not there"}
    more = {"store": store, "backend": backend, "paused": True, "jobs": {}, "plans_refused": 2}
    told = list(lines(STATUS | more | {"refused": refused, "clock_ahead_s": 90.0, "notes": ["limits: none"]}))
    assert told[0].endswith(
        "; store postgresql (41.3 MB), TROUBLE: database is locked; "
        "backend local, 1 node, no answer for 40 s: no answer, start 17: EIO"
    )
    assert told[1:] == [
        "policy fifo (paused); jobs: none",
        "limits: cpu affinity only",
        f"2 plans refused, the last at {clock(NOW, NOW)}: node gpu9 is not there",
        "the clock of this machine went back; times are 90 s ahead of it",
        "limits: none",
    ]


def test_a_node():
    assert row(NODE) == ["gpu2", "draining", "A100", "2/8", "6/24", "125/500", "16 18"]
    assert row(NODE | {"jobs": []})[-1] == "-"
    assert row(NODE | {"jobs": ["16"], "gpus_broken": [3]})[-1] == "16 (GPU 3 is broken)"
