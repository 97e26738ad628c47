"""Reservations and failures in a run, to the second: what was found by users."""

from __future__ import annotations

import pytest

from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure


def run(jobs, policy="fifo", failures=(), speed=1.0, window=(1000.0, 2000.0), **rules):
    made = (Reservation("r1", *window, nodes=("n0",)),) if window else ()
    types = {"V100": GpuType("V100", speed)}
    cluster = Cluster("one", (Node("n0", "V100", 4, 12.0, 250.0),), types, reservations=made)
    outcomes = Simulator(cluster, jobs, parse_policy(policy), Rules(**rules), failures).run().outcomes
    return dict(zip(outcomes.job_id, outcomes.finish_s.tolist(), strict=True)), outcomes.restarts.tolist()


def rigid(duration_s, **more):
    return Job("a", 0.0, 4, duration_s, preemptible=False, **more)


@pytest.mark.parametrize(
    ("job", "more", "finish_s"),
    [
        (rigid(900.0), {}, 900.0),
        (rigid(900.0), {"speed": 0.5}, 3800.0),  # it takes 1800 s there
        (rigid(990.0), {"start_s": 60.0}, 3050.0),
        (rigid(900.0, min_gpus=1, max_gpus=4), {"policy": "srtf+drf"}, 900.0),
        (rigid(1200.0), {"unknown_durations": True}, 3200.0),
    ],
)
def test_who_must_not_be_stopped_is_over_before_a_reservation_or_starts_after_it(job, more, finish_s):
    finishes, restarts = run([job], **more)
    assert finishes == {"a": pytest.approx(finish_s)}
    assert restarts == [0]


def test_fewer_gpus_take_longer():
    finishes, restarts = run([rigid(900.0, min_gpus=1, max_gpus=4), Job("b", 0.0, 2, 100.0)], "srtf+drf")
    assert restarts == [0, 0]
    assert finishes["a"] <= 1000.0 or finishes["a"] >= 2900.0


def test_a_node_that_fails_while_it_is_down_is_back_when_both_are_repaired():
    failures = [Failure(1000.0, "n0", 500.0), Failure(1200.0, "n0", 3000.0)]
    finishes, _ = run([Job("a", 0.0, 4, 10_000.0)], failures=failures, window=None)
    assert finishes == {"a": 14_200.0}
