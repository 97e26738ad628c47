"""A real torchrun, and plain DDP without it: what they print, and how they end after a stop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from local_cases import PLAIN, benches, member, run_of, until
from trainyard.live.backends.base import RunKey
from trainyard.live.ends import MemberEnd, Run, end_of

pytestmark = pytest.mark.torch

JOB = Path(__file__).parents[3] / "ddp_job.py"
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))
ENV = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
LAUNCHERS = {"torchrun": [TORCHRUN], "plain processes": [sys.executable]}
RUN = Run(RunKey("1", 1), True, False, (), 0.0)


bench = benches(PLAIN)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ddp_runs_on_two_nodes(bench, launcher):
    nodes = member("a", (0, 1)), member("b", (0,), first_rank=2)
    bench.start(run_of([*LAUNCHERS[launcher], str(JOB), "3"], *nodes, env=ENV))
    ended = [until(lambda node=node: bench.seen(node=node).ended, 300.0) for node in ("a", "b")]
    assert [exit_.code for each in ended for exit_ in each.exits if exit_.code] == [], bench.log()
    told = [bench.file(f"rank{rank}").read_text() for rank in range(3)]
    assert told == ["3 0 True", "3 1 True", "3 0 True"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ddp_saves_when_it_is_told_to_stop(bench, launcher):
    bench.start(run_of([*LAUNCHERS[launcher], str(JOB), "0"], member(gpus=(0, 1)), env=ENV))
    for rank in range(2):
        until(bench.file(f"ready{rank}").exists, 300.0)
    bench.stop(grace_s=300.0)
    ended = until(lambda: bench.seen().ended, 300.0)
    assert bench.file("model.pt").exists()
    event = end_of(RUN, [MemberEnd("n0", ended)], 9.0)
    code = {"torchrun": "stopped", "plain processes": "saved"}[launcher]
    assert (event.code, event.saved) == (code, True), (ended, bench.log())
