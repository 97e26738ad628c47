"""The clock around the core."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

from conftest import checked, finishes
from trainyard.errors import TrainyardError
from trainyard.garbage import no_collection
from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure, RandomFailures


def test_rounds_decide_only_at_multiples():
    jobs = [Job("a", 1.0, 1, 10.0), Job("b", 2.0, 1, 10.0)]
    result = checked(uniform_cluster(1, 1), jobs, round_s=60.0)
    assert result.outcomes.start_s.tolist() == [60.0, 120.0]
    assert result.outcomes.finish_s.tolist() == [70.0, 130.0]


def test_a_round_at_the_very_start_counts():
    result = checked(uniform_cluster(1, 1), [Job("a", 0.0, 1, 10.0)], round_s=60.0)
    assert result.outcomes.start_s.tolist() == [0.0]


def test_completions_free_room_for_arrivals_of_the_same_moment():
    jobs = [Job("a", 0.0, 1, 10.0), Job("b", 10.0, 1, 5.0)]
    assert finishes(checked(uniform_cluster(1, 1), jobs)) == {"a": 10.0, "b": 15.0}


def test_until_stops_the_clock():
    jobs = [Job("a", 0.0, 1, 10.0), Job("b", 0.0, 1, 100.0), Job("c", 500.0, 1, 1.0)]
    result = checked(uniform_cluster(1, 2), jobs, until_s=50.0)
    summary = result.summary()
    assert summary["completed"] == 1
    assert result.outcomes.gpu_s.tolist() == [10.0, 50.0, 0.0]
    assert summary["gpu_utilization"] == pytest.approx(60 / 100)
    assert math.isnan(result.outcomes.start_s[2])


def test_tiresias_demotes_at_the_moment_the_threshold_is_reached():
    jobs = [Job("a", 0.0, 1, 1000.0), Job("b", 10.0, 1, 50.0)]
    result = checked(uniform_cluster(1, 1), jobs, "tiresias(threshold_gpu_s=100)")
    assert finishes(result) == {"b": 150.0, "a": 1050.0}


def test_las_gives_way_to_newcomers():
    jobs = [Job("a", 0.0, 1, 100.0), Job("b", 50.0, 1, 10.0)]
    assert finishes(checked(uniform_cluster(1, 1), jobs, "las")) == {"b": 60.0, "a": 110.0}


def test_ftf_serves_the_job_that_is_worst_off():
    # At 100 s both wait; b has waited longer for its short run, so its ratio is the larger one.
    jobs = [Job("x", 0.0, 1, 100.0), Job("a", 1.0, 1, 1000.0), Job("b", 2.0, 1, 10.0)]
    result = finishes(checked(uniform_cluster(1, 1), jobs, "ftf", round_s=100.0))
    assert result["b"] == 110.0


def test_slow_gpus_take_longer_and_the_fast_are_filled_first():
    types = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}
    nodes = (Node("slow", "K80", 1, 3, 60), Node("fast", "V100", 1, 3, 60))
    jobs = [Job("a", 0.0, 1, 100.0), Job("b", 0.0, 1, 100.0), Job("c", 0.0, 2, 100.0)]
    result = finishes(checked(Cluster("mixed", nodes, types), jobs))
    assert result["a"] == 100.0
    assert result["b"] == 400.0
    assert result["c"] == 400.0 + 200.0 / 1.25  # no type has two: both together, work split by speed


def test_a_higher_priority_moves_an_unconstrained_job_to_another_type():
    types = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.5)}
    nodes = (Node("fast", "V100", 1, 3, 60), Node("slow", "K80", 1, 3, 60))
    jobs = [Job("any", 0.0, 1, 100.0), Job("picky", 10.0, 1, 20.0, gpu_type="V100")]
    result = finishes(checked(Cluster("mixed", nodes, types), jobs, "srtf"))
    assert result["picky"] == 30.0
    assert result["any"] < 200.0


def test_profiles_decide_the_speed():
    profile = zoo_profile("resnet50")
    job = Job("a", 0.0, 2, samples=1e6, model="resnet50", profile=profile)
    result = checked(uniform_cluster(1, 8, "V100"), [job])
    assert result.outcomes.finish_s[0] == pytest.approx(result.outcomes.ideal_s[0])


def test_profiled_jobs_pay_their_own_restart_cost():
    profile = zoo_profile("resnet50")
    jobs = [
        Job("long", 0.0, 1, duration_s=100.0, model="resnet50", profile=profile),
        Job("short", 10.0, 1, duration_s=5.0),
    ]
    result = finishes(checked(uniform_cluster(1, 1, "V100"), jobs, "srtf"))
    assert result["long"] == pytest.approx(105.0 + profile.restart_s)


def test_status_decides_how_a_job_ends():
    jobs = [
        Job("a", 0.0, 1, 1.0, status="Failed"),
        Job("b", 0.0, 1, 1.0, status="Killed"),
        Job("c", 0.0, 1, 1.0),
    ]
    result = checked(uniform_cluster(1, 4), jobs)
    assert [result.story_of(j)[-1].after.value for j in "abc"] == ["failed", "cancelled", "done"]


def test_failures_from_a_list():
    result = checked(
        uniform_cluster(1, 1),
        [Job("a", 0.0, 1, 100.0, checkpoint_s=30.0)],
        failures=[Failure(50.0, "GPU-0", 10.0)],
    )
    assert result.outcomes.finish_s[0] == 60.0 + 70.0
    assert result.outcomes.restarts[0] == 1


def test_random_failures_are_seeded_and_ordered():
    cluster = uniform_cluster(5)
    first, again, other = (RandomFailures(cluster, 10.0, 1.0, seed) for seed in (1, 1, 2))
    some = [f for f, _ in zip(first, range(200), strict=False)]
    assert some == [f for f, _ in zip(again, range(200), strict=False)]
    assert some != [f for f, _ in zip(other, range(200), strict=False)]
    assert some == sorted(some, key=lambda f: f.time_s)
    gaps = np.diff([f.time_s for f in some])
    assert gaps.mean() == pytest.approx(11.0 * 3600 / 5, rel=0.25)  # up 10 h, down 1 h, five nodes


def test_a_policy_that_starves_a_job_is_told_so():
    class Nobody(Fifo):
        def heads(self, snapshot):
            return iter(())

    for options in (Rules(), Rules(round_s=10.0)):
        simulator = Simulator(
            uniform_cluster(1), [Job("a", 0.0, 1, 1.0)], Policy("idle", order=Nobody()), options
        )
        with pytest.raises(TrainyardError, match="job a waits and nothing will ever happen: policy idle"):
            simulator.run()


def test_elastic_jobs_share_under_drf():
    jobs = [Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=8), Job("b", 0.0, 2, 100.0, min_gpus=1, max_gpus=8)]
    result = checked(uniform_cluster(1, 8), jobs, "drf")
    assert finishes(result) == {"a": 50.0, "b": 50.0}  # four GPUs each instead of the two asked for


def test_placement_of_multi_node_gangs():
    cluster = uniform_cluster(3, 4)
    jobs = [Job("one", 0.0, 1, 10.0), Job("gang", 0.0, 6, 10.0)]
    packed = checked(cluster, jobs, "fifo").story_of("gang")[-2].allocation
    assert packed.workers == (("GPU-1", 4), ("GPU-0", 2))  # the rest fits best where one is taken
    spread = checked(cluster, jobs, "fifo+spread").story_of("gang")[-2].allocation
    assert spread.workers == (("GPU-0", 2), ("GPU-1", 2), ("GPU-2", 2))


def test_consolidation_can_be_required():
    jobs = [Job(f"s{i}", 0.0, 3, 10.0 + i) for i in range(2)] + [Job("pair", 0.0, 2, 5.0)]
    cluster = uniform_cluster(2, 4)
    assert finishes(checked(cluster, jobs, "fifo"))["pair"] == 5.0
    assert finishes(checked(cluster, jobs, "fifo+pack(consolidate=require)"))["pair"] == 15.0


def test_summary_of_nothing_finished_is_still_a_summary():
    result = Simulator(
        uniform_cluster(1), [Job("a", 0.0, 1, 10.0)], parse_policy("fifo"), Rules(until_s=5.0)
    ).run()
    assert result.summary()["completed"] == 0


@pytest.mark.interpreted
@pytest.mark.parametrize("policy", ["fifo", "las"])
def test_a_run_leaves_no_cycles_behind(policy):
    with no_collection():
        simulator = Simulator(uniform_cluster(1, 2), [Job("a", 0.0, 1, 10.0)], parse_policy(policy))
        simulator.run()
        yard = weakref.ref(simulator.yard)
        del simulator
        assert yard() is None


def test_the_search_for_cycles_goes_on_after_an_error():
    with pytest.raises(TrainyardError), no_collection():
        raise TrainyardError("no")
    assert gc.isenabled()
