"""A simulation that goes on from a moment of a yard."""

from __future__ import annotations

import math

import pytest

from trainyard.core.events import DecisionDue, JobCancelled, JobSubmitted
from trainyard.core.twins import fork
from trainyard.core.yard import Yard
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator

CLUSTER = uniform_cluster(2, 4)
JOBS = [
    Job("a", 0.0, 4, 100.0),
    Job("b", 5.0, 8, 50.0),
    Job("c", 12.0, 2, 30.0, min_gpus=1, max_gpus=4),
    Job("d", 40.0, 4, 5.0),
    Job("e", 41.0, 8, 20.0),
]


def finishes(result):
    return dict(zip(result.outcomes.job_id, result.outcomes.finish_s.tolist(), strict=True))


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "srtf+tune", "srtf+doubling", "market"])
@pytest.mark.parametrize("after", [1, 3, 5])
def test_it_ends_as_if_nothing_had_happened(policy, after):
    rules = Rules(restart_s=3.0, start_s=1.0)
    whole = finishes(Simulator(CLUSTER, JOBS, parse_policy(policy), rules).run())
    first = Simulator(CLUSTER, JOBS, parse_policy(policy), rules)
    for _ in range(after):
        assert first.advance()
        first.decide()
    over = {job_id for job_id, at in whole.items() if at <= first.now_s}
    to_come = [job for job in JOBS if job.arrival_s > first.now_s]
    twin = fork(first.yard)
    rest = finishes(Simulator.resume(twin, parse_policy(policy), first.now_s, to_come).run())
    assert rest == {job_id: pytest.approx(at) for job_id, at in whole.items() if job_id not in over}
    assert finishes(first.run()) == whole  # the yard that was forked knows nothing of it


def test_the_truth_may_be_another_than_what_is_believed():
    yard = Yard(CLUSTER, parse_policy("fifo").decide)
    yard.handle(JobSubmitted(0.0, JOBS[0]))
    yard.handle(DecisionDue(0.0))
    run = Simulator.resume(yard, parse_policy("fifo"), 10.0, [JOBS[3]], truth={"a": 4 * 30.0}).run()
    assert finishes(run) == {"a": 30.0, "d": 45.0}
    assert run.outcomes.start_s.tolist() == [0.0, 40.0]


def test_what_was_leaving_is_gone():
    yard = Yard(CLUSTER, parse_policy("fifo").decide)
    for job in (JOBS[0], Job("x", 0.0, 8, 10.0)):
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    yard.handle(JobCancelled(2.0, "a"))
    result = Simulator.resume(yard, parse_policy("fifo"), 3.0).run()
    assert finishes(result) == {"a": 3.0, "x": 13.0}
    assert result.outcomes.outcome == ["cancelled", "done"]
    assert not math.isnan(result.outcomes.finish_s[0])
