"""Each effect of the speed model by its formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Input, Layer, Profile, Sync, Tables
from trainyard.model.speed import SpeedModel
from trainyard.model.speed.compute import (
    most_samples,
    per_sample_s,
    reference_s,
    samples_per_step,
    variable_s,
)
from trainyard.model.speed.inputs import hit_rate, input_cpu_s, input_storage_s
from trainyard.model.speed.paramserver import at_least_one, one_way_s, overhead_s

CLUSTER = Cluster(
    "two",
    (
        Node("v0", "V100", 4, 12, 64),
        Node("v1", "V100", 4, 12, 64, network_gbps=5),
        Node("p0", "P100", 4, 12, 64),
    ),
    {"P100": GpuType("P100", 0.5, 12.0), "V100": GpuType("V100", 1.0, 32.0)},
)
TYPES = ["V100", "P100"]
LAYERS = (Layer(0.1, 0.2, 10), Layer(0.3, 0.4, 30))


def floats(*numbers):
    return np.array(numbers, dtype=np.float64)


class TestReference:
    @pytest.mark.parametrize(
        ("profile", "seconds"),
        [
            (Profile(), 1.0),
            (Profile(compute=Compute(fixed_s=0.1)), 0.0),
            (Profile(compute=Compute(per_sample_s={"V100": 0.02, "P100": 9.0})), 0.02),
            (Profile(compute=Compute(per_sample_s={"P100": 0.03, "V100": 9.0})), 0.015),
            (Profile(batch=10, layers=LAYERS), 0.1),
            (Profile(batch=10, layers=LAYERS, compute=Compute(per_sample_s={"V100": 0.02})), 0.02),
            (Profile(layers=(Layer(0.0, 0.0, 5),)), 1.0),
            (Profile(tables=Tables(workers_servers=((1, 0, 5.0),))), 0.0),
            (Profile(tables=Tables(cpu_memory=((1, 1, 5.0),))), 0.0),
            (Profile(tables=Tables()), 1.0),
        ],
    )
    def test_seconds_per_sample_at_speed_one(self, profile, seconds):
        assert reference_s(profile, CLUSTER) == pytest.approx(seconds)

    def test_a_type_that_is_not_named_goes_by_its_speed(self):
        named = Profile(compute=Compute(per_sample_s={"V100": 0.02}))
        assert per_sample_s(named, CLUSTER, TYPES).tolist() == [0.02, 0.04]
        both = Profile(compute=Compute(per_sample_s={"V100": 0.02, "P100": 0.03}))
        assert per_sample_s(both, CLUSTER, TYPES).tolist() == [0.02, 0.03]
        assert per_sample_s(Profile(), CLUSTER, TYPES).tolist() == [1.0, 2.0]


class TestSplit:
    def test_a_weak_batch_grows_with_the_workers(self):
        workers = np.array([0, 1, 3])
        assert samples_per_step(Profile(batch=8), workers).tolist() == [8.0, 8.0, 8.0]
        assert samples_per_step(Profile(batch=8, scaling="weak"), workers).tolist() == [0.0, 8.0, 24.0]

    def test_memory_limits_whole_samples(self):
        assert most_samples(Profile(), CLUSTER, TYPES) is None
        assert most_samples(Profile(compute=Compute(sample_gb=0.0)), CLUSTER, TYPES) is None
        five = Profile(compute=Compute(sample_gb=5.0))
        assert most_samples(five, CLUSTER, [*TYPES, "unlisted"]).tolist() == [6.0, 2.0, 3.0]

    @given(st.integers(1, 500), st.integers(0, 5), st.integers(0, 5), st.floats(0.01, 1), st.floats(0.01, 1))
    def test_proportional_is_never_slower_than_equal(self, batch, fast, slow, one, two):
        if fast + slow == 0:
            return
        arguments = floats(batch), np.array([[fast, slow]]), floats(one, two)
        proportional, equal = (variable_s(split, *arguments)[0] for split in ("proportional", "equal"))
        assert proportional == pytest.approx(batch / (fast / one + slow / two))
        slowest = max(t for t, count in ((one, fast), (two, slow)) if count)
        assert equal == pytest.approx(batch / (fast + slow) * slowest)
        assert proportional <= equal * (1 + 1e-9)

    def test_nothing_takes_no_time(self):
        assert variable_s("proportional", floats(8, 8), np.array([[1], [2]]), floats(0.0)).tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("most", "seconds"),
        [
            (floats(99, 99), 2.0),  # 20 and 10 samples: all finish together
            (floats(20, 10), 2.0),
            (floats(18, 99), 12 * 0.2),  # the fast one is full, the slow one takes the rest
            (floats(99, 6), 24 * 0.1),
            (floats(15, 14), 2.0),  # 29 fit, 30 are asked for: several passes
            (floats(15, 15), 15 * 0.2),
        ],
    )
    def test_a_full_worker_leaves_the_rest_to_the_other(self, most, seconds):
        found = variable_s("proportional", floats(30), np.array([[1, 1]]), floats(0.1, 0.2), most)
        assert found[0] == pytest.approx(seconds)


class TestInput:
    known = Input(cpu_s_per_sample=0.5, sample_kb=2000.0, dataset_gb=80.0)

    def test_cpus(self):
        assert input_cpu_s(self.known, floats(8, 8), floats(2, 4)).tolist() == [2.0, 1.0]
        assert input_cpu_s(Input(sample_kb=1.0), floats(8), floats(0)).tolist() == [0.0]

    def test_the_part_of_the_dataset_that_memory_holds(self):
        assert hit_rate(self.known, floats(0, 20, 80, 200)).tolist() == [0.0, 0.25, 1.0, 1.0]
        assert hit_rate(Input(sample_kb=1.0), floats(0, 20)).tolist() == [1.0, 1.0]

    def test_storage_reads_what_memory_does_not_hold(self):
        found = input_storage_s(self.known, floats(8, 8, 8), floats(0, 20, 80), floats(4, 4, 4))
        assert found.tolist() == [8 * 2 / 4, 8 * 2 * 0.75 / 4, 0.0]


class TestServers:
    def test_one_way(self):
        ps = Sync("ps")
        found = one_way_s(ps, 1000.0, np.array([1, 4, 4]), np.array([1, 1, 2]), floats(8, 8, 8))
        assert found.tolist() == pytest.approx([1.0, 4.0, 2.0])  # 8 gigabits over 8 Gbit/s

    def test_only_asynchronous_workers_share_a_server_in_part(self):
        arguments = 1000.0, np.array([4]), np.array([2]), floats(8)
        assert one_way_s(Sync("ps", "async", async_share=0.25), *arguments)[0] == pytest.approx(0.5)
        assert one_way_s(Sync("ps", "sync", async_share=0.25), *arguments)[0] == pytest.approx(2.0)

    def test_managing_workers_and_servers(self):
        workers, servers = np.array([3, 3]), np.array([0, 2])
        costs = {"worker_overhead_s": 0.5, "server_overhead_s": 2.0}
        assert overhead_s(Sync("ps", **costs), workers, servers).tolist() == [3.5, 5.5]
        assert overhead_s(Sync("ring", **costs), workers, servers).tolist() == [1.5, 5.5]
        assert at_least_one(servers).tolist() == [1, 2]


class TestCurves:
    """Speeds by size: each point is what an allocation of that size gives."""

    ring = Profile(batch=64, compute=Compute(0.01, {"V100": 0.01}), sync=Sync("ring", gradient_mb=100.0))
    ps = replace(ring, sync=Sync("ps", gradient_mb=100.0))
    apart = replace(ps, worker=Demand(3.0, 16.0), server=Demand(2.0, 8.0))

    def job(self, profile, **fields):
        return Job("j", 0.0, 2, 10.0, profile=profile, **fields)

    def test_a_ring_is_faster_inside_a_node(self):
        model = SpeedModel(CLUSTER)
        curve = model.curve(self.job(self.ring), 0, 6)
        for w, gbps in ((1, 100), (2, 100), (4, 100), (5, 5), (6, 5)):
            ring_s = 2 * (w - 1) * 5e-5 + 2 * (w - 1) / w * 0.8 / gbps
            assert curve[w] == pytest.approx(64 / (0.01 + 0.64 / w + (ring_s if w > 1 else 0.0))), w
        assert curve[0] == 0.0

    def test_a_curve_has_a_server_for_each_worker(self):
        model, job = SpeedModel(CLUSTER), self.job(self.ps)
        surface = model.surface(job, 0, 4, 4)
        assert surface.shape == (5, 5)
        assert model.curve(job, 0, 4).tolist() == [float(surface[k, k]) for k in range(5)]
        assert surface[4, 2] == pytest.approx(64 / (0.01 + 0.16 + 2 * 4 * 0.8 / 2 / 100))

    def test_slower_types_have_their_own_curve(self):
        model = SpeedModel(CLUSTER)
        assert model.curve(self.job(None), 0, 3).tolist() == [0.0, 1.0, 2.0, 3.0]
        assert model.curve(self.job(None), 1, 3).tolist() == [0.0, 0.5, 1.0, 1.5]

    @pytest.mark.parametrize(
        ("workers", "servers", "gbps"),
        [(1, 1, 100), (3, 1, 100), (3, 2, 10), (4, 0, 100), (4, 1, 10), (2, 3, 100), (2, 4, 10)],
    )
    def test_servers_apart_may_need_another_node(self, workers, servers, gbps):
        """A node has 12 CPUs: three for each worker and two for each server."""
        surface = SpeedModel(CLUSTER).surface(self.job(self.apart), 0, 4, 4)
        one_way = workers * 0.8 / max(servers, 1) / gbps
        assert surface[workers, servers] == pytest.approx(64 / (0.01 + 0.64 / workers + 2 * one_way))

    def test_what_a_job_asks_for_feeds_its_curve(self):
        fed = Profile(batch=8, input=Input(cpu_s_per_sample=2.0))
        model = SpeedModel(CLUSTER)
        assert model.curve(self.job(fed), 0, 3).tolist() == [0.0, 1.0, 2.0, 3.0]
        few = self.job(fed, cpus=2.0)  # one for each worker
        assert model.curve(few, 0, 3).tolist() == [0.0, 0.5, 1.0, 1.5]

    def test_equal_questions_have_one_answer(self):
        model = SpeedModel(CLUSTER)
        job, same = self.job(self.ring), self.job(replace(self.ring))
        assert model.curve(job, 0, 4) is model.curve(same, 0, 4)
        assert model.curve(job, 0, 4) is not model.curve(job, 1, 4)
        assert len(model.curve(job, 0, 3)) == 4

    def test_workers_of_several_types(self):
        model = SpeedModel(CLUSTER)
        found = model.mixed(self.job(Profile(batch=12)), np.array([[2, 0], [0, 2], [2, 2]]))
        assert found.tolist() == pytest.approx([2.0, 1.0, 3.0])
        served = model.mixed(self.job(self.ps), np.array([[3, 0]]))
        assert served[0] == pytest.approx(float(model.curve(self.job(self.ps), 0, 3)[3]))
