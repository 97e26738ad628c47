"""A run without an end in sight is refused, with what would give it one."""

from __future__ import annotations

import pytest

from trainyard.errors import InputError
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure, RandomFailures
from trainyard.sim.length import FailureCount

CLUSTER = uniform_cluster(1, 4)


def run(job, policy="fifo", failures=(), **rules):
    return Simulator(CLUSTER, [job], parse_policy(policy), Rules(**rules), failures).run()


@pytest.mark.parametrize("policy", ["sia", "gavel", "hadar"])
def test_a_job_of_too_many_rounds_is_named(policy):
    with pytest.raises(InputError, match=r"job 'a' runs for 1e\+12 s, which is .* rounds of .*--until-s"):
        run(Job("a", 0.0, 1, 1e12), policy)


def test_an_end_makes_it_possible():
    assert run(Job("a", 0.0, 1, 1e12), "sia", until_s=600.0).summary()["completed"] == 0


def test_the_rounds_of_a_run_count_like_those_of_a_stage():
    with pytest.raises(InputError, match=r"1e\+11 rounds of 0\.1 s"):
        run(Job("a", 0.0, 1, 1e10), round_s=0.1)


def test_without_rounds_a_job_may_be_as_long_as_it_likes():
    assert run(Job("a", 0.0, 1, 1e12)).summary()["makespan_s"] == 1e12


def test_a_job_that_never_gets_through_is_told(monkeypatch):
    monkeypatch.setattr("trainyard.sim.length.MOST_FAILURES", 2000)
    often = RandomFailures(CLUSTER, 0.001, 1e-6)
    with pytest.raises(InputError, match="nodes failed 2,000 times and no job ended meanwhile"):
        run(Job("a", 0.0, 1, 86400.0), failures=often)


def test_failures_are_counted_from_the_end_of_a_job(monkeypatch):
    monkeypatch.setattr("trainyard.sim.length.MOST_FAILURES", 2)
    count = FailureCount()
    for ended in (0, 0, 1, 1, 2, 2):
        count.tell(ended)
    with pytest.raises(InputError):
        count.tell(2)


def test_failures_from_a_file_are_no_trouble():
    failures = [Failure(float(i), "GPU-0", 0.5) for i in range(1, 50)]
    assert run(Job("a", 0.0, 1, 100.0, checkpoint_s=0), failures=failures).summary()["completed"] == 1
