"""Optimus: one task at a time against exhaustive search, learning, and its even placement."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from conftest import checked, set_numbers
from trainyard.core.events import DecisionDue, JobSubmitted, ProgressReported
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, Node, NodeTable, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Loss, Profile, Sync
from trainyard.policy.grammar import parse_policy
from trainyard.policy.place.even import Even
from trainyard.policy.request import Request
from trainyard.policy.size.growth import Grower
from trainyard.policy.size.optimus import one_by_one
from trainyard.state.beliefs import Learned, Told
from trainyard.state.room import Room

SERVED = Profile(
    batch=256,
    compute=Compute(0.02, {"GPU": 0.002}),
    sync=Sync("ps", gradient_mb=200.0, worker_overhead_s=0.002, server_overhead_s=0.001),
    worker=Demand(2.0, 16.0),
    server=Demand(1.0, 8.0),
)


def served(a, b, c, d, e, worker, server, most=8):
    """A job with Optimus' synchronous speed function, by workers and servers."""
    w, p = np.indices((most + 1, most + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        speeds = 1.0 / (a / w + b + c * w / p + d * w + e * p)
    return Grower(np.where((w > 0) & (p > 0), speeds, 0.0), (1, 1), worker, server)


def total_s(growers, left, sizes):
    return sum(work / g.speeds[w][p] for g, work, (w, p) in zip(growers, left, sizes, strict=True))


def test_near_the_optimum(capsys):
    """No bound is proven: the ratio to exhaustive search is printed, and small where curves are smooth."""
    rng, ratios, gpus, cpus = np.random.default_rng(5), [], 6, 16
    for _ in range(25):
        left, factors = rng.uniform(1, 10, 2).tolist(), rng.uniform(0.1, 2.0, (2, 5))
        growers = [served(*each, (1 / gpus, 2 / cpus, 0.0), (0.0, 1 / cpus, 0.0)) for each in factors]
        sizes = one_by_one(growers, left, {})
        assert sizes[:, 0].sum() <= gpus
        assert (2 * sizes[:, 0] + sizes[:, 1]).sum() <= cpus
        shapes = [(w, p) for w, p in product(range(1, 9), repeat=2) if 2 * w + p <= cpus]
        best = min(
            total_s(growers, left, pair)
            for pair in product(shapes, repeat=2)
            if sum(w for w, _ in pair) <= gpus and sum(2 * w + p for w, p in pair) <= cpus
        )
        ratios.append(total_s(growers, left, sizes) / best)
    with capsys.disabled():
        print(f" optimus / optimum: mean {np.mean(ratios):.4f}, worst {max(ratios):.3f}", end="")
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < 1.05


def test_one_job_alone_stops_where_nothing_is_gained():
    grower = served(8.0, 0.1, 0.5, 0.05, 0.02, (0.01, 0.0, 0.0), (0.0, 0.01, 0.0))
    ((workers, servers),) = one_by_one([grower], [1.0], {}).tolist()
    now = grower.speeds[workers][servers]
    assert (workers, servers) > (1, 1)
    assert all(
        grower.speeds[w][p] <= now
        for w, p in ((workers + 1, servers), (workers, servers + 1))
        if max(w, p) <= 8
    )


def test_who_finds_no_room_waits():
    small = (0.5, 0.0, 0.0), (0.0, 0.5, 0.0)
    growers = [served(1, 1, 1, 1, 1, *small, most=2) for _ in range(3)]
    assert one_by_one(growers, [1.0] * 3, {}).tolist() == [[1, 1], [1, 1], [0, 0]]


def test_a_trial_comes_before_growth_and_stays_as_it_is():
    """Both start with one task of each; the second one's trial takes all that is left."""
    tenth = (0.1, 0.0, 0.0), (0.0, 0.1, 0.0)
    growers = [served(8.0, 0.1, 0.5, 0.05, 0.02, *tenth) for _ in range(2)]
    assert one_by_one(growers, [9.0, 1.0], {1: (9, 9)}).tolist() == [[1, 1], [9, 9]]
    assert one_by_one(growers, [9.0, 1.0], {1: (1, 1)})[1].tolist() == [1, 1]
    grown = one_by_one(growers, [9.0, 1.0], {})
    assert one_by_one(growers, [9.0, 1.0], {1: (10, 9)}).tolist() == grown.tolist()  # no room for that one


def test_workers_and_servers_come_from_the_model():
    """What the stage asks for is where neither one more worker nor one more server would pay."""
    yard = Yard(uniform_cluster(2, 8), parse_policy("optimus").decide)
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 1, samples=1e6, profile=SERVED, min_gpus=1, max_gpus=8)))
    (start,) = yard.handle(DecisionDue(0.0))
    held = start.allocation
    surface = Told(yard.snapshot(0.0)).surface(0)
    now = surface[held.gpus, held.servers]
    assert held.servers > 1
    if held.gpus < 8:
        assert surface[held.gpus + 1, held.servers] <= now
    if held.servers < 8:
        assert surface[held.gpus, held.servers + 1] <= now


class TestLearning:
    def test_speeds_are_learnt_from_trials(self):
        job = Job("a", 0.0, 1, samples=4e6, profile=SERVED, min_gpus=1, max_gpus=8)
        yard = Yard(uniform_cluster(2, 8), parse_policy("optimus(mode=learn)").decide)
        yard.handle(JobSubmitted(0.0, job))
        seen = yard.records["a"].see()
        for w, p in ((1, 1), (2, 2), (2, 1), (1, 2), (4, 2)):
            speed = Told(yard.snapshot(0.0)).speed(0, w, p)
            seen.ran_at((w, p), 150.0, 150.0 * speed)
        learned, told = Learned(yard.snapshot(0.0)).surface(0), Told(yard.snapshot(0.0)).surface(0)
        assert learned[1:6, 1:6] == pytest.approx(told[1:6, 1:6], rel=0.02)

    def test_nothing_known_in_advance(self):
        """All jobs end, soon after those of a scheduler that is told everything."""
        jobs = [
            Job(f"j{i}", 400.0 * i, 1, samples=3e6, profile=SERVED, min_gpus=1, max_gpus=8) for i in range(6)
        ]
        cluster = uniform_cluster(4, 8)
        told = checked(cluster, jobs, "optimus").summary()["avg_jct_s"]
        learned = checked(cluster, jobs, "optimus(mode=learn)").summary()["avg_jct_s"]
        assert told < learned < 1.5 * told

    def test_the_end_is_predicted_from_losses(self):
        """The profile says 10 million samples; the losses come to rest far earlier."""
        curve = Loss(0.3, 1.0, 0.1, epoch_samples=1e4)
        job = Job("a", 0.0, 1, samples=1e7, profile=replace(SERVED, loss=curve), min_gpus=1, max_gpus=8)
        yard = Yard(uniform_cluster(1, 8), parse_policy("optimus").decide)
        yard.handle(JobSubmitted(0.0, job))
        set_numbers(yard.snapshot(0.0), "a", remaining=1e7 - 12e4)  # twelve epochs are done
        left = Learned(yard.snapshot(0.0), losses=True).left[0]
        largest = 1 / (0.3 + 1.0) + 0.1
        drop = [1 / (0.3 * (k - 10) + 1) - 1 / (0.3 * k + 1) for k in range(11, 101)]
        rest = 11 + next(i for i, d in enumerate(drop) if d < 0.05 * largest)
        assert left == pytest.approx((rest - 12) * 1e4, abs=2e4)

    def test_losses_that_jobs_report_count_more_than_the_profile(self):
        job = Job("a", 0.0, 1, samples=1e6, profile=SERVED, min_gpus=1, max_gpus=8)
        yard = Yard(uniform_cluster(1, 8), parse_policy("optimus").decide)
        yard.handle(JobSubmitted(0.0, job))
        assert Learned(yard.snapshot(0.0), losses=True).left[0] == 1e6  # told nothing, believes the user
        yard.handle(DecisionDue(0.0))
        for epoch in range(1, 3):
            yard.handle(ProgressReported(float(epoch), "a", epoch * 1e4, loss=1 / epoch))
        assert Learned(yard.snapshot(3.0), losses=True).left[0] == 20 * 1e4  # too few to tell
        for epoch in range(3, 30):
            yard.handle(ProgressReported(float(epoch), "a", epoch * 1e4, loss=1 / epoch))
        assert Learned(yard.snapshot(30.0), losses=True).left[0] == 1e4  # has come to rest

    def test_reports_do_not_hide_what_was_seen(self):
        """A live job that reports every minute still ends its trials, at the speed that it reports."""
        job = Job("a", 0.0, 1, samples=1e7, profile=SERVED, min_gpus=1, max_gpus=8)
        yard = Yard(uniform_cluster(1, 8), parse_policy("optimus(mode=learn)").decide)
        yard.handle(JobSubmitted(0.0, job))
        yard.handle(DecisionDue(0.0))
        for minute in range(1, 4):
            yard.handle(ProgressReported(60.0 * minute, "a", 6000.0 * minute))
        assert yard.snapshot(180.0).seen(0) == {(1, 1): (180.0, 18000.0)}

    def test_no_trial_of_more_gpus_than_there_are_of_its_type(self):
        nodes = (Node("v", "V100", 1, 3.0, 50.0), Node("k", "K80", 4, 12.0, 200.0))
        jobs = [
            Job(f"j{i}", 0.0, 1, 60.0, gpu_type="V100" if i else "", min_gpus=1, max_gpus=2) for i in range(3)
        ]
        result = checked(Cluster("two", nodes), jobs, "sjf+optimus(mode=learn,explore_s=20)")
        assert result.summary()["completed"] == 3

    def test_a_loss_before_anything_is_done_says_nothing(self):
        job = Job("a", 0.0, 1, samples=1e6, profile=SERVED, min_gpus=1, max_gpus=8)
        yard = Yard(uniform_cluster(1, 8), parse_policy("optimus(mode=learn)").decide)
        yard.handle(JobSubmitted(0.0, job))
        yard.handle(ProgressReported(0.0, "a", 0.0, loss=2.3))
        assert Learned(yard.snapshot(0.0), losses=True).left[0] == 1e6


class TestEven:
    def put(self, cluster, gpus, servers=0, server=None, cpus=None):
        nodes = NodeTable(cluster)
        request = Request(
            Job("a", 0.0, gpus, 1.0), gpus, -1, cpus, None if cpus is None else 1.0, servers, server
        )
        allocation = Even().put(request, Room.all_of(nodes), nodes, 0)
        return [(s.node, s.gpus, s.servers) for s in allocation.shares]

    def test_one_node_if_it_holds_all(self):
        assert self.put(uniform_cluster(3, 8), 8) == [("GPU-0", 8, 0)]

    def test_the_same_on_each_of_the_fewest(self):
        assert self.put(uniform_cluster(3, 8), 10) == [("GPU-0", 5, 0), ("GPU-1", 5, 0)]

    def test_servers_too(self):
        """Eight workers and eight servers need 24 CPUs and more: two nodes with four of each."""
        placed = self.put(uniform_cluster(3, 8), 8, 8, Demand(2.0, 4.0), cpus=2.0)
        assert placed == [("GPU-0", 4, 4), ("GPU-1", 4, 4)]

    def test_what_cannot_be_even_is_packed(self):
        nodes = tuple(Node(f"n{i}", "GPU", g, 3.0 * g, 60.0 * g) for i, g in enumerate((4, 1)))
        assert self.put(Cluster("two", nodes), 5) == [("n0", 4, 0), ("n1", 1, 0)]
