"""Ladders of CPU and memory sensitivity: what they promise on any profile, and Synergy's demands."""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Input, Profile, Sync, Tables
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.model.speed.sensitivity import AS_IT_IS
from trainyard.model.zoo import zoo_profile

FAST = settings(max_examples=120, deadline=None)
TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}
SERVER = uniform_cluster(1, 8, "V100")  # Synergy's: 24 CPUs, 500 GB


# -- random profiles and places ---------------------------------------------------------------------------


@st.composite
def places(draw):
    """A cluster of unlike nodes of one or two GPU types, and so many GPUs on each of them."""
    nodes, workers = [], []
    for i in range(draw(st.integers(1, 3))):
        gpus = draw(st.sampled_from([1, 2, 4, 8]))
        cpus, memory_gb = draw(st.sampled_from([1.5, 3.0, 7.0])), draw(st.sampled_from([20.0, 62.5, 100.0]))
        storage = draw(st.sampled_from([50.0, 500.0]))
        gpu_type = draw(st.sampled_from(["V100", "K80"]))
        nodes.append(Node(f"n{i}", gpu_type, gpus, cpus * gpus, memory_gb * gpus, storage_mbps=storage))
        workers.append((f"n{i}", draw(st.integers(1, gpus))))
    return Cluster("test", tuple(nodes), TYPES), tuple(workers)


def axis(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=4, unique=True).map(sorted)


@st.composite
def tables(draw, kind):
    """Rows of a `cpu_memory` table: a full grid that never falls or is noisy, or only some of its points."""
    cpus, memory_gb = draw(axis([0.5, 1, 2, 3, 4, 6, 9, 12, 24])), draw(axis([8, 20.83, 62.5, 125, 187.5]))
    step = st.sampled_from([0.0, 0.1, 1.0, 3.0] if kind == "monotone" else [0.1, 0.9, 1.0, 1.1, 3.0])
    size = len(cpus) * len(memory_gb)
    speeds = np.array(draw(st.lists(step, min_size=size, max_size=size))).reshape(len(cpus), len(memory_gb))
    if kind == "monotone":
        speeds = speeds.cumsum(axis=0).cumsum(axis=1) + 0.05
    points = product(cpus, memory_gb)
    rows = [(float(c), float(m), float(s)) for (c, m), s in zip(points, speeds.ravel(), strict=True)]
    if kind == "scattered":
        rows = draw(st.permutations(rows))[: draw(st.integers(1, size))]
    return Tables(cpu_memory=tuple(rows))


@st.composite
def inputs(draw):
    return Input(
        cpu_s_per_sample=draw(st.sampled_from([0.0, 0.01, 0.3, 2.0])),
        sample_kb=draw(st.sampled_from([0.0, 100.0, 5e4])),
        dataset_gb=draw(st.sampled_from([0.0, 5.0, 150.0, 2000.0])),
    )


@st.composite
def profiles(draw, kinds=("monotone", "noisy", "scattered", "input", "nothing")):
    kind = draw(st.sampled_from(kinds))
    return kind, Profile(
        batch=draw(st.sampled_from([1, 8, 64])),
        scaling=draw(st.sampled_from(["weak", "strong"])),
        compute=draw(st.none() | st.sampled_from([0.02, 0.2, 1.5]).map(lambda s: Compute(0.01, {"V100": s}))),
        sync=draw(st.none() | st.just(Sync(gradient_mb=100.0))),
        input=draw(inputs()) if kind == "input" else None,
        tables=draw(tables(kind)) if kind in ("monotone", "noisy", "scattered") else None,
        worker=draw(st.none() | st.builds(Demand, st.sampled_from([0.5, 2.0, 9.0]), st.just(30.0))),
    )


class Speeds:
    """Speeds of a profile with so many proportional shares of its nodes, from the speed model itself."""

    def __init__(self, cluster, workers, profile):
        self.job = Job("j", 0.0, sum(gpus for _, gpus in workers), samples=1.0, profile=profile)
        self.model = SpeedModel(cluster)
        self.ladder = Sensitivity(cluster, self.model).ladder(self.job, workers)
        self.parts = [(node, dict(workers)[node.node_id]) for node in cluster.nodes]
        self.most = min(node.gpus / gpus for node, gpus in self.parts)  # shares that the fullest node has

    def at(self, cpus, memory):
        shares = (
            Share(n.node_id, gpus, 0, cpus * gpus * n.cpus / n.gpus, memory * gpus * n.memory_gb / n.gpus)
            for n, gpus in self.parts
        )
        return self.model.rate(self.job, Allocation(tuple(shares)))

    def per_gpu(self, cpus, memory_gb):
        """CPUs and GB per GPU in proportional shares."""
        gpus = self.job.gpus
        unit_cpus = sum(count * n.cpus / n.gpus for n, count in self.parts) / gpus
        unit_memory = sum(count * n.memory_gb / n.gpus for n, count in self.parts) / gpus
        return cpus / unit_cpus, memory_gb / unit_memory


@FAST
@given(places(), profiles())
def test_rungs_grow_from_the_proportional_share_up(place, known):
    _, profile = known
    speeds = Speeds(*place, profile)
    ladder, proportional = speeds.ladder, speeds.at(1.0, 1.0)
    assert len(ladder.cpus) == len(ladder.memory) == len(ladder.speed) == len(ladder.between) + 1
    for axis_ in (ladder.cpus, ladder.memory):
        assert all(low <= high for low, high in pairwise(axis_))
        assert 0 <= axis_[0] <= 1 + 1e-9
        assert axis_[-1] <= speeds.most * (1 + 1e-9)
    assert all(low < high for low, high in pairwise(ladder.speed))
    for cpus, memory, speed in zip(ladder.cpus, ladder.memory, ladder.speed, strict=True):
        assert speeds.at(cpus, memory) == pytest.approx(speed * proportional, rel=1e-9)
    assert ladder.speed[0] >= 1 - 1e-9


@FAST
@given(places(), profiles())
def test_the_top_rung_has_the_full_speed(place, known):
    kind, profile = known
    speeds = Speeds(*place, profile)
    ladder = speeds.ladder
    cpus, memory = (list(np.linspace(0.02, 1.0, 6) * speeds.most) for _ in range(2))
    if profile.tables is not None:
        points = [speeds.per_gpu(*row[:2]) for row in profile.tables.cpu_memory]
        cpus += [min(point[0], speeds.most) for point in points]
        memory += [min(point[1], speeds.most) for point in points]
    # Noisy speeds may be highest below the lowest rung, and a ladder has no way down.
    least = (0.0, 0.0) if kind in ("monotone", "input", "nothing") else (ladder.cpus[0], ladder.memory[0])
    grid = product([c for c in cpus if c >= least[0]], [m for m in memory if m >= least[1]])
    if kind == "scattered":  # between measured points nothing is promised
        grid = [p for p in points if least[0] <= p[0] <= speeds.most and least[1] <= p[1] <= speeds.most]
    fastest = max((speeds.at(*point) for point in grid), default=0.0)
    assert speeds.at(ladder.cpus[-1], ladder.memory[-1]) >= fastest * (1 - 1e-6)


@FAST
@given(places(), profiles(("monotone", "noisy", "scattered", "input")))
def test_stopping_between_rungs_is_never_slower_than_the_rung_below(place, known):
    _, profile = known
    speeds = Speeds(*place, profile)
    ladder = speeds.ladder
    for k in (k for k in range(ladder.top) if ladder.between[k]):
        below = speeds.at(*ladder.at(float(k)))
        for part in np.linspace(0.0, 1.0, 17)[1:-1]:
            assert speeds.at(*ladder.at(k + part)) >= below * (1 - 1e-6)


@FAST
@given(places(), profiles(("monotone", "noisy", "input")))
def test_where_one_may_stop_speed_grows_about_in_proportion_to_the_way(place, known):
    _, profile = known
    speeds = Speeds(*place, profile)
    ladder = speeds.ladder
    for k in (k for k in range(ladder.top) if ladder.between[k]):
        below, above = (speeds.at(*ladder.at(float(at))) for at in (k, k + 1))
        for part in (0.25, 0.5, 0.75):
            assert speeds.at(*ladder.at(k + part)) >= 0.96 * (below + part * (above - below))


@FAST
@given(places(), profiles(("monotone", "input")))
def test_the_top_rung_is_the_least_with_that_speed(place, known):
    """Less of either resource, down to the lowest rung and to what a worker needs at least, is slower.

    Where something else than its table limits the job, that holds for the points of the table only.
    """
    kind, profile = known
    profile = replace(profile, compute=None, sync=None) if kind == "monotone" else profile
    speeds = Speeds(*place, profile)
    ladder = speeds.ladder
    full = speeds.at(ladder.cpus[-1], ladder.memory[-1])
    least = (0.0, 0.0)
    if kind == "input" and profile.worker is not None:
        least = speeds.per_gpu(profile.worker.cpus, profile.worker.memory_gb)
    for part in (0.5, 0.9):
        cpus, memory = (low + part * (high - low) for low, high in ends(ladder))
        if least[0] <= cpus < ladder.cpus[-1] * (1 - 1e-3):
            assert speeds.at(cpus, ladder.memory[-1]) < full
        if least[1] <= memory < ladder.memory[-1] * (1 - 1e-3):
            assert speeds.at(ladder.cpus[-1], memory) < full


def ends(ladder):
    return (ladder.cpus[0], ladder.cpus[-1]), (ladder.memory[0], ladder.memory[-1])


# -- Synergy's models -------------------------------------------------------------------------------------


def best(model, gpus=1, cluster=SERVER):
    job = Job("j", 0.0, gpus, 1.0, profile=zoo_profile(model))
    return Sensitivity(cluster, SpeedModel(cluster)).best_demand(job, gpus)


@pytest.mark.parametrize(
    ("model", "cpus", "memory_gb"),
    [
        ("alexnet", 12, 125),
        ("resnet18", 9, 62.5),
        ("resnet50", 4, 62.5),
        ("mobilenet", 6, 62.5),
        ("shufflenet", 12, 125),
        ("m5", 6, 187.5),
        ("deepspeech2", 3, 62.5),
        ("gnmt", 1, 20),
        ("transformer", 1, 20),
        ("lstm", 1, 20),
    ],
)
def test_best_case_demands_of_synergy(model, cpus, memory_gb):
    assert best(model) == pytest.approx((cpus, memory_gb))


@pytest.mark.parametrize(
    ("model", "gpus", "cpus", "memory_gb"),
    [
        # Half of the server is 6 CPUs and 125 GB per GPU. Synergy takes all 500 GB for alexnet, but with
        # 6 CPUs per GPU half of that is as good.
        ("alexnet", 4, 6, 62.5),
        ("resnet18", 4, 6, 62.5),
        ("m5", 4, 6, 125),
        ("resnet50", 4, 4, 62.5),
        ("alexnet", 2, 12, 125),
        # A whole server, or more than one: nothing but the proportional share.
        ("alexnet", 8, 3, 62.5),
        ("alexnet", 16, 3, 62.5),
        ("lstm", 16, 1, 20),
    ],
)
def test_best_case_demands_end_where_the_server_does(model, gpus, cpus, memory_gb):
    profile = replace(zoo_profile(model), sync=None)  # gradients of many GPUs would be the bottleneck
    cluster = uniform_cluster(2, 8, "V100")
    job = Job("j", 0.0, gpus, 1.0, profile=profile)
    demand = Sensitivity(cluster, SpeedModel(cluster)).best_demand(job, gpus)
    assert demand == pytest.approx((cpus, memory_gb))


def test_best_case_demands_of_many_jobs_at_once():
    jobs = [Job(m, 0.0, 1, 1.0, profile=zoo_profile(m)) for m in ("m5", "lstm", "alexnet")]
    cpus, memory_gb = Sensitivity(SERVER, SpeedModel(SERVER)).best_demands(jobs)
    assert cpus == pytest.approx([6, 1, 12])
    assert memory_gb == pytest.approx([187.5, 20, 125])


def ladder_of(job, cluster=SERVER, workers=None):
    sensitivity = Sensitivity(cluster, SpeedModel(cluster))
    return sensitivity.ladder(job, workers or ((cluster.nodes[0].node_id, job.gpus),))


def test_the_ladder_of_alexnet():
    ladder = ladder_of(Job("j", 0.0, 1, 1.0, profile=zoo_profile("alexnet")))
    assert ladder.cpus[0] == pytest.approx(1)
    assert ladder.memory[0] == pytest.approx(1)
    assert (ladder.cpus[-1], ladder.memory[-1]) == pytest.approx((4, 2))
    assert ladder.speed[-1] == pytest.approx(2.94)


def test_nothing_known_is_the_proportional_share():
    assert ladder_of(Job("j", 0.0, 2, 1.0)) is AS_IT_IS
    assert ladder_of(Job("j", 0.0, 2, 1.0, profile=Profile(compute=Compute(0.1)))) is AS_IT_IS


def test_what_the_user_asks_for_is_the_only_rung():
    job = Job("j", 0.0, 2, 1.0, cpus=12.0, profile=zoo_profile("lstm"))
    assert astuple(ladder_of(job)) == ((2.0,), (1.0,), (1.0,), ())
    job = Job("j", 0.0, 2, 1.0, memory_gb=25.0)
    assert astuple(ladder_of(job)) == ((1.0,), (0.2,), (1.0,), ())


def test_places_that_differ_in_names_share_a_ladder():
    cluster = uniform_cluster(3, 8, "V100")
    sensitivity = Sensitivity(cluster, SpeedModel(cluster))
    job = Job("j", 0.0, 4, 1.0, profile=zoo_profile("alexnet"))
    here = sensitivity.ladder(job, (("V100-0", 4),))
    assert sensitivity.ladder(job, (("V100-2", 4),)) is here
    assert sensitivity.ladder(job, (("V100-0", 2), ("V100-1", 2))) is not here


def test_the_fullest_node_of_a_gang_limits_its_ladder():
    cluster = uniform_cluster(2, 8, "V100")
    job = Job("j", 0.0, 8, 1.0, profile=replace(zoo_profile("resnet18"), sync=None))
    assert ladder_of(job, cluster, (("V100-0", 6), ("V100-1", 2))).cpus[-1] == pytest.approx(8 / 6)
    assert ladder_of(job, cluster, (("V100-0", 4), ("V100-1", 4))).cpus[-1] == pytest.approx(2)


def test_a_slower_gpu_needs_less():
    cluster = Cluster("k", (Node("k", "K80", 8, 24.0, 500.0),), TYPES)
    cpus, memory_gb = best("alexnet", cluster=cluster)
    assert cpus <= 3
    assert memory_gb <= 62.5


def test_a_job_with_parameter_servers_has_rungs_too():
    rows = ((3.0, 62.5, 1.0), (6.0, 62.5, 2.0))
    profile = Profile(sync=Sync("ps", gradient_mb=1.0), tables=Tables(cpu_memory=rows))
    assert ladder_of(Job("j", 0.0, 1, 1.0, profile=profile)).top == 1


def test_a_dip_that_is_not_in_the_middle_of_a_step_is_seen():
    """From 3 to 24 CPUs in one step, but with 4 CPUs the job is slower than with 3."""
    rows = ((3.0, 62.5, 1.0), (4.0, 62.5, 0.2), (5.0, 62.5, 1.0), (24.0, 62.5, 9.0))
    job = Job("j", 0.0, 1, 1.0, profile=Profile(scaling="weak", tables=Tables(cpu_memory=rows)))
    assert ladder_of(job).between == (False,)


def test_a_dip_off_the_middle_between_two_points_is_seen():
    """From 8 to 20.83 GB the speed grows; it is even in the middle, but falls below the start before that."""
    rows = ((3.0, 20.83, 1.1), (3.0, 62.5, 1.0), (12.0, 8.0, 1.1), (12.0, 62.5, 3.0), (12.0, 125.0, 0.9))
    job = Job("j", 0.0, 2, 1.0, profile=Profile(scaling="weak", tables=Tables(cpu_memory=rows)))
    cluster = Cluster("k", (Node("k", "K80", 4, 6.0, 250.0),), TYPES)
    ladder = ladder_of(job, cluster)
    assert ladder.memory == pytest.approx((8 / 62.5, 20.83 / 62.5))
    assert ladder.between == (False,)


def test_what_a_worker_needs_at_least_is_asked_for_though_less_would_be_as_fast():
    profile = Profile(
        compute=Compute(0.01, {"V100": 0.02}),
        input=Input(2.0, 5e4, 2000.0),
        worker=Demand(9.0, 30.0),
    )
    nodes = (
        Node("n0", "V100", 2, 6.0, 125.0, storage_mbps=50.0),
        Node("n1", "V100", 2, 14.0, 40.0, storage_mbps=500.0),
    )
    speeds = Speeds(Cluster("test", nodes, TYPES), (("n0", 1), ("n1", 1)), profile)
    cpus, memory = speeds.ladder.cpus[-1], speeds.ladder.memory[-1]
    assert cpus == pytest.approx(speeds.per_gpu(9.0, 30.0)[0])
    assert speeds.at(0.9 * cpus, memory) == speeds.at(cpus, memory)
