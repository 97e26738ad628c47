"""The composition: what a job's speed is under what it holds."""

from dataclasses import replace

import numpy as np
import pytest

from trainyard.errors import InputError
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Input, Layer, Profile, Sync, Tables
from trainyard.model.speed import Shapes, SpeedModel

MIXED = Cluster(
    "mixed",
    (
        Node("V100-0", "V100", 4, 12, 250, storage_mbps=400),
        Node("V100-1", "V100", 2, 8, 100, network_gbps=5),
        Node("P100-0", "P100", 4, 16, 128),
        Node("cpu-0", "CPU", 0, 64, 512),
    ),
    {"P100": GpuType("P100", 0.5)},
)


def shapes(workers, **held):
    n = len(workers)
    columns = {
        "servers": 0,
        "nodes": 1,
        "bandwidth_gbps": 10.0,
        "cpus": 1e9,
        "memory_gb": 1e9,
        "storage_mbps": 1e9,
    } | held
    return Shapes(np.array(workers), **{name: np.full(n, value) for name, value in columns.items()})


def speed(profile, workers=(1,), cluster=None, **held):
    model = SpeedModel(cluster or uniform_cluster(1, gpu_type="V100"))
    return model.bulk(profile, shapes([list(workers)], **held))[0]


def job(profile=None, **fields):
    return Job(**{"job_id": "j", "arrival_s": 0.0, "gpus": 4, "profile": profile, **fields})


class TestSmd:
    """The golden job of the SMD specification: E iterations at 14 workers and 2 servers."""

    iterations = 100
    sync = Sync(kind="ps", gradient_mb=300, worker_overhead_s=3.5, server_overhead_s=0.005)
    profile = Profile(
        batch=2000, compute=Compute(fixed_s=8.0, per_sample_s={"V100": 1.0}), sync=sync, scaling="strong"
    )

    @pytest.mark.parametrize(("w", "p", "golden"), [(14, 2, 20322.714), (10, 10, 24353.0)])
    def test_sync(self, w, p, golden):
        per_s = speed(self.profile, [w], servers=p)
        assert self.iterations * 2000 / per_s == pytest.approx(golden, abs=0.001)

    @pytest.mark.parametrize(("w", "p", "golden"), [(14, 2, 776.357), (10, 10, 932.9)])
    def test_async(self, w, p, golden):
        mode = replace(self.sync, mode="async", async_share=0.5)
        per_s = speed(replace(self.profile, batch=50, scaling="weak", sync=mode), [w], servers=p)
        assert self.iterations * 50 / per_s == pytest.approx(golden, abs=0.001)

    def test_theta_form_with_coefficients(self):
        eta = (0.9, 0.5, 0.7)
        profile = replace(self.profile, sync=replace(self.sync, eta=eta))
        for w, p in [(1, 1), (3, 7), (14, 2)]:
            theta = (350, 0.5, eta[1] * 800, eta[2] * 48, eta[0] * 200000)
            tau = theta[0] * w + theta[1] * p + theta[2] + theta[3] * w / p + theta[4] / w
            assert self.iterations * 2000 / speed(profile, [w], servers=p) == pytest.approx(tau)


class TestCompute:
    profile = Profile(batch=120, compute=Compute(per_sample_s={"V100": 0.01, "P100": 0.03}))

    def test_proportional_split_ends_together(self):
        assert speed(self.profile, [2, 3, 0], MIXED) == pytest.approx(2 / 0.01 + 3 / 0.03)

    def test_equal_split_waits_for_the_slowest(self):
        equal = replace(self.profile, compute=replace(self.profile.compute, split="equal"))
        assert speed(equal, [2, 3, 0], MIXED) == pytest.approx(5 / 0.03)
        assert speed(equal, [5, 0, 0], MIXED) == pytest.approx(5 / 0.01)

    def test_unnamed_type_takes_the_reference_over_its_speed(self):
        first = Profile(batch=10, compute=Compute(per_sample_s={"V100": 0.01}))
        assert speed(first, [0, 1, 0], MIXED) == pytest.approx(50)
        second = Profile(batch=10, compute=Compute(per_sample_s={"P100": 0.03}))
        assert speed(second, [1, 0, 0], MIXED) == pytest.approx(1 / (0.03 * 0.5))
        unknown = Profile(batch=10, compute=Compute(per_sample_s={"A100": 0.02}))
        assert speed(unknown, [0, 1, 0], MIXED) == pytest.approx(1 / 0.04)

    def test_weak_scaling_pays_fixed_time_once_per_worker_batch(self):
        strong = Profile(batch=100, compute=Compute(fixed_s=1.0, per_sample_s={"V100": 0.01}))
        assert speed(strong, [4]) == pytest.approx(100 / 1.25)
        assert speed(replace(strong, scaling="weak"), [4]) == pytest.approx(400 / 2)

    def test_asynchronous_workers_do_not_wait_for_each_other(self):
        sync = Sync(kind="ps", mode="async")
        profile = replace(
            self.profile, sync=sync, scaling="weak", compute=replace(self.profile.compute, split="equal")
        )
        assert speed(profile, [2, 3, 0], MIXED, servers=1) == pytest.approx(2 / 0.01 + 3 / 0.03)

    def test_layers_alone_give_the_time_of_a_step_at_the_whole_batch(self):
        layers = (Layer(0.1, 0.2, 10), Layer(0.3, 0.4, 30))
        assert speed(Profile(batch=20, layers=layers)) == pytest.approx(20 / 1.0)
        ring = Profile(batch=20, layers=layers, sync=Sync(latency_s=0.0))
        assert speed(ring, [2]) == pytest.approx(20 / (0.5 + 2 * 0.5 * 40 * 8e-3 / 10))

    def test_nothing_known_is_a_sample_per_second_and_gpu(self):
        assert speed(Profile(batch=32), [4]) == pytest.approx(4)


class TestInput:
    profile = Profile(
        batch=100,
        compute=Compute(per_sample_s={"V100": 1e-6}),
        input=Input(cpu_s_per_sample=0.01, sample_kb=100, dataset_gb=100),
    )

    def test_cpus_and_storage_limit(self):
        assert speed(self.profile, cpus=3.0) == pytest.approx(300)
        assert speed(self.profile, memory_gb=25.0, storage_mbps=60.0) == pytest.approx(60e6 / (100e3 * 0.75))

    def test_a_dataset_in_memory_needs_no_storage(self):
        assert speed(self.profile, memory_gb=100.0, storage_mbps=0.0) == pytest.approx(1e6)

    def test_nothing_to_read_or_compute_with_is_standstill(self):
        assert speed(self.profile, cpus=0.0) == 0
        assert speed(self.profile, memory_gb=0.0, storage_mbps=0.0) == 0


class TestTables:
    def test_workers_servers_stands_in_for_the_core_and_scales_with_speed(self):
        table = Tables(workers_servers=((1, 0, 100), (2, 0, 180), (4, 0, 300)))
        assert speed(Profile(tables=table), [2]) == 180
        assert speed(Profile(tables=table), [0, 2, 0], MIXED) == pytest.approx(90)
        capped = Profile(tables=table, input=Input(cpu_s_per_sample=0.1))
        assert speed(capped, [2], cpus=6.0) == pytest.approx(60)

    def test_cpu_memory_caps_each_worker(self):
        table = Tables(cpu_memory=((1, 50, 10), (3, 50, 30)))
        profile = Profile(batch=8, scaling="weak", compute=Compute(per_sample_s={"V100": 0.05}), tables=table)
        assert speed(profile, [4], cpus=4.0, memory_gb=200.0) == pytest.approx(40)
        assert speed(profile, [4], cpus=12.0, memory_gb=200.0) == pytest.approx(80)
        assert speed(Profile(tables=table), [4], cpus=8.0, memory_gb=200.0) == pytest.approx(80)


class TestAllocations:
    model = SpeedModel(MIXED)
    across = Allocation((Share("V100-0", 2, 0, 6, 100), Share("V100-1", 1, 1, 4, 50)))

    def test_shapes_of(self):
        row = self.model.shapes_of([self.across, Allocation((Share("P100-0", 4, 0, 4, 8),))])
        assert row.workers.tolist() == [[3, 0, 0], [0, 4, 0]]
        assert (row.servers.tolist(), row.nodes.tolist()) == ([1, 0], [2, 1])
        assert row.bandwidth_gbps.tolist() == [5.0, 100.0]
        assert (row.cpus.tolist(), row.memory_gb.tolist()) == ([10, 4], [150, 8])
        assert row.storage_mbps.tolist() == [400 * 2 / 4 + 500 / 2, 500]

    def test_a_share_of_servers_only_counts_as_a_node(self):
        aside = Allocation((Share("V100-0", 2, 0, 6, 100), Share("cpu-0", 0, 2, 4, 8)))
        row = self.model.shapes_of([aside])
        assert (row.nodes[0], row.servers[0], row.bandwidth_gbps[0]) == (2, 2, 10.0)
        assert row.workers.tolist() == [[2, 0, 0]]

    def test_no_gpus_stand_still(self):
        for profile in (None, Profile(), Profile(scaling="weak", sync=Sync(kind="ps", gradient_mb=1))):
            nothing = Allocation((Share("cpu-0", 0, 2, 4, 8),))
            assert self.model.rate(job(profile), nothing) == 0
            assert self.model.rate(job(profile), Allocation(())) == 0

    def test_a_job_without_a_profile_is_linear_in_gpu_speed(self):
        both = Allocation((Share("V100-0", 3, 0, 0, 0), Share("P100-0", 3, 0, 0, 0)))
        assert self.model.rate(job(), both) == 4.5
        assert self.model.bulk(None, self.model.shapes_of([both])).tolist() == [4.5]

    def test_rates_are_remembered_per_profile(self):
        slow, fast = Profile(batch=1), Profile(batch=1, compute=Compute(per_sample_s={"V100": 0.1}))
        assert [self.model.rate(job(p), self.across) for p in (slow, fast, slow)] == pytest.approx([3, 30, 3])


class TestProportional:
    model = SpeedModel(MIXED)

    def test_fewest_nodes_with_their_share(self):
        packed = self.model.proportional(np.array([[0, 0, 0], [4, 0, 0], [5, 0, 0], [1, 1, 0], [8, 0, 0]]))
        assert packed.nodes.tolist() == [0, 1, 2, 2, 3]
        assert packed.cpus.tolist() == [0, 12, 16, 7, 28]
        assert packed.memory_gb.tolist() == [0, 250, 300, 94.5, 450]
        assert packed.storage_mbps.tolist() == [0, 400, 650, 225, 1400]
        assert packed.bandwidth_gbps.tolist()[1:4] == [100, 5, 10]

    def test_is_what_the_allocation_says(self):
        allocation = Allocation((Share("V100-0", 4, 0, 12, 250), Share("V100-1", 1, 0, 4, 50)))
        packed, said = self.model.proportional(np.array([[5, 0, 0]])), self.model.shapes_of([allocation])
        for name in Shapes.__slots__:
            assert (getattr(packed, name) == getattr(said, name)).all(), name

    def test_nodes_and_servers_can_be_said(self):
        spread = self.model.proportional(np.array([[2, 0, 0]]), servers=np.array([3]), nodes=np.array([2]))
        assert (spread.nodes[0], spread.servers[0], spread.bandwidth_gbps[0]) == (2, 3, 10.0)


class TestWork:
    def test_duration_means_the_reference(self):
        profile = Profile(batch=64, compute=Compute(per_sample_s={"V100": 0.01}))
        model = SpeedModel(MIXED)
        assert model.reference_rate(job(profile)) == pytest.approx(400)
        assert model.total_samples(job(profile, duration_s=10)) == pytest.approx(4000)
        assert model.ideal_s(job(profile, duration_s=10)) == 10
        assert model.ideal_s(job(profile, samples=800)) == pytest.approx(2)

    def test_without_a_profile_work_is_gpu_seconds(self):
        model = SpeedModel(MIXED)
        assert model.reference_rate(job(duration_s=10)) == 4
        assert model.total_samples(job(duration_s=10)) == 40

    def test_the_nearest_type_is_scaled_to_speed_one(self):
        cluster = Cluster(
            "slow",
            (Node("A-0", "A", 4, 8, 64), Node("B-0", "B", 4, 8, 64)),
            {"A": GpuType("A", 0.25), "B": GpuType("B", 0.5)},
        )
        model = SpeedModel(cluster)
        named = Profile(batch=64, compute=Compute(per_sample_s={"B": 0.02}))
        assert model.reference_rate(job(named)) == pytest.approx(400)
        table = Profile(tables=Tables(workers_servers=((4, 0, 100),)))
        assert model.reference_rate(job(table)) == 100

    def test_the_reference_allocation_runs_at_the_reference_rate(self):
        profile = Profile(batch=64, input=Input(cpu_s_per_sample=1.7, sample_kb=1e6, dataset_gb=999.0))
        model = SpeedModel(MIXED)
        held = Allocation((Share("V100-0", 4, 0, 12, 250),))
        assert model.rate(job(profile), held) == model.reference_rate(job(profile))

    def test_more_gpus_than_the_cluster_has_still_have_a_reference(self):
        profile = Profile(batch=64, sync=Sync(gradient_mb=10))
        assert SpeedModel(uniform_cluster(1)).reference_rate(job(profile, gpus=64)) > 0

    def test_no_work_is_an_error(self):
        with pytest.raises(InputError, match="neither duration_s nor samples"):
            SpeedModel(MIXED).total_samples(job())

    def test_work_that_never_ends(self):
        stuck = Profile(input=Input(cpu_s_per_sample=1.0))
        cluster = Cluster("no cpus", (Node("V100-0", "V100", 4, 0, 64),))
        assert SpeedModel(cluster).ideal_s(job(stuck, samples=5)) == float("inf")
