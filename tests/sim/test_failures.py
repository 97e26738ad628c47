"""Random node failures: what they are drawn from, and that the clock carries them out."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.sim.failures import Failure, RandomFailures


def drawn(count, *arguments, **options):
    return list(islice(RandomFailures(uniform_cluster(*arguments), **options), count))


def test_a_node_fails_again_only_after_its_repair():
    by_node = {}
    for failure in drawn(300, 3, mtbf_h=0.5, repair_h=1.0, seed=4):
        assert failure.time_s > by_node.get(failure.node, 0.0)
        by_node[failure.node] = failure.time_s + failure.repair_s
    assert set(by_node) == {"GPU-0", "GPU-1", "GPU-2"}


def test_times_up_and_down_have_the_given_means():
    failures = drawn(4000, 1, mtbf_h=2.0, repair_h=0.5, seed=1)
    down = np.array([failure.repair_s for failure in failures])
    starts = np.array([failure.time_s for failure in failures])
    up = starts - np.concatenate([[0.0], starts[:-1] + down[:-1]])
    assert up.mean() == pytest.approx(2.0 * 3600, rel=0.05)
    assert down.mean() == pytest.approx(0.5 * 3600, rel=0.05)
    # Exponential times: the standard deviation is the mean.
    assert up.std() == pytest.approx(up.mean(), rel=0.1)


def test_repairs_take_an_hour_unless_it_is_said():
    asked, told = drawn(20, 2, mtbf_h=5.0), drawn(20, 2, mtbf_h=5.0, repair_h=1.0, seed=0)
    assert asked == told


def test_no_nodes_never_fail():
    assert drawn(1, 0, mtbf_h=1.0) == []


def test_a_failure_while_nothing_runs_costs_nothing():
    result = checked(
        uniform_cluster(1, 1), [Job("a", 100.0, 1, 10.0)], failures=[Failure(5.0, "GPU-0", 20.0)]
    )
    assert result.outcomes.finish_s.tolist() == [110.0]
    assert result.outcomes.restarts.tolist() == [0]


def test_an_arrival_waits_for_the_repair():
    result = checked(
        uniform_cluster(1, 1), [Job("a", 10.0, 1, 10.0)], failures=[Failure(10.0, "GPU-0", 20.0)]
    )
    assert result.outcomes.start_s.tolist() == [30.0]


def test_an_end_at_the_moment_of_the_failure_is_an_end():
    result = checked(uniform_cluster(1, 1), [Job("a", 0.0, 1, 10.0)], failures=[Failure(10.0, "GPU-0", 20.0)])
    assert result.outcomes.finish_s.tolist() == [10.0]
    assert [change.after.value for change in result.story_of("a")][-1] == "done"


def test_every_failure_of_a_list_comes():
    failures = [Failure(25.0, "GPU-0", 5.0), Failure(50.0, "GPU-0", 5.0), Failure(75.0, "GPU-0", 5.0)]
    job = Job("a", 0.0, 1, 40.0, checkpoint_s=10.0)
    result = checked(uniform_cluster(1, 1), [job], failures=failures)
    # 20 of 25 s are saved, then 20 of 20: the work is done when the second failure comes.
    assert result.outcomes.finish_s.tolist() == [50.0]
    assert result.outcomes.restarts.tolist() == [1]
    longer = Job("a", 0.0, 1, 70.0, checkpoint_s=10.0)
    result = checked(uniform_cluster(1, 1), [longer], failures=failures)
    # 20 + 20 + 20 are saved at 80 s; ten more are left.
    assert result.outcomes.finish_s.tolist() == [90.0]
    assert result.outcomes.restarts.tolist() == [3]
    assert result.outcomes.gpu_s.tolist() == [25.0 + 20.0 + 20.0 + 10.0]
