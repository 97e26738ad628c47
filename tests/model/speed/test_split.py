"""Whole-sample batch splits, and the speed of workers whose memory is too small for their share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Profile
from trainyard.model.speed import SpeedModel
from trainyard.model.speed.split import split_batch

speeds = st.lists(st.floats(0.1, 100.0), min_size=1, max_size=12).map(np.array)


@given(st.integers(1, 5000), speeds)
def test_sums_to_the_batch_and_is_within_one_sample_of_the_share(batch, rho):
    split = split_batch(batch, rho)
    assert split.sum() == batch
    assert (np.abs(split - batch * rho / rho.sum()) < 1).all()
    assert (split / rho).max() <= batch / rho.sum() + 1 / rho.min() + 1e-9


@given(st.integers(1, 300), speeds, st.integers(0, 2**32 - 1))
def test_no_random_split_finishes_sooner_by_more_than_one_sample(batch, rho, seed):
    ours = (split_batch(batch, rho) / rho).max()
    drawn = np.random.default_rng(seed).multinomial(batch, rho / rho.sum(), size=50)
    assert ours <= (drawn / rho).max(axis=1).min() + 1 / rho.min() + 1e-9


@given(st.integers(1, 200), speeds, st.data())
def test_nobody_gets_more_than_it_holds(batch, rho, data):
    most = np.array(data.draw(st.lists(st.integers(0, 60), min_size=len(rho), max_size=len(rho))))
    split = split_batch(batch, rho, most)
    if most.sum() < batch:
        assert split is None
        return
    assert split.sum() == batch
    assert (split <= most).all()
    # Water-filling: whoever is not full is about as busy as any other that is not full.
    free = split < most
    if free.any():
        took = split / rho
        assert (took[~free] <= took[free].max() + 1 / rho.min() + 1e-6).all()


def _model(sample_gb):
    cluster = Cluster(
        "mixed",
        (
            Node("fast-0", "fast", 2, 8, 64),
            Node("slow-0", "slow", 2, 8, 64),
        ),
        {"fast": GpuType("fast", 1.0, 8.0), "slow": GpuType("slow", 0.5, 16.0)},
    )
    profile = Profile(batch=24, compute=Compute(per_sample_s={"fast": 0.1, "slow": 0.2}, sample_gb=sample_gb))
    return SpeedModel(cluster), Job("a", 0.0, 4, samples=100.0, profile=profile)


def _both(fast, slow):
    shares = [Share("fast-0", fast, 0, 4.0, 32.0), Share("slow-0", slow, 0, 4.0, 32.0)]
    return Allocation(tuple(s for s in shares if s.gpus))


def test_speed_with_memory_to_spare_is_proportional():
    speed, job = _model(0.0)
    assert speed.rate(job, _both(2, 2)) == pytest.approx(30.0)
    assert speed.batch_split(job, _both(2, 2)) == {"fast-0": [8, 8], "slow-0": [4, 4]}


def test_a_full_worker_leaves_the_rest_to_the_others():
    speed, job = _model(8.0 / 6)  # 6 samples fit on a fast one, 12 on a slow one
    assert speed.rate(job, _both(2, 2)) == pytest.approx(24 / (6 * 0.2))
    assert speed.batch_split(job, _both(2, 2)) == {"fast-0": [6, 6], "slow-0": [6, 6]}


def test_a_batch_that_does_not_fit_is_computed_in_several_passes():
    speed, job = _model(8.0)  # one sample on a fast one, two on a slow one
    assert speed.rate(job, _both(2, 2)) == pytest.approx(30.0)
    assert speed.batch_split(job, _both(2, 2)) == {"fast-0": [8, 8], "slow-0": [4, 4]}


def test_a_batch_that_just_fits_fills_everybody():
    speed, job = _model(8.0 / 4)  # 4 samples on a fast one, 8 on a slow one: 24 in all
    assert speed.rate(job, _both(2, 2)) == pytest.approx(24 / (8 * 0.2))
    assert speed.batch_split(job, _both(2, 2)) == {"fast-0": [4, 4], "slow-0": [8, 8]}


def test_bulk_and_one_by_one_agree_with_memory_limits():
    speed, job = _model(1.0)
    workers = np.array([(f, s) for f in range(3) for s in range(3) if f + s])
    bulk = speed.mixed(job, workers)
    single = [speed.rate(job, _both(f, s)) for f, s in workers.tolist()]
    assert bulk.tolist() == single
