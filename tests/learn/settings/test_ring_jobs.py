"""The all-reduce setting of the DL2 reproduction."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from trainyard.learn.batch import BatchEnv
from trainyard.learn.settings.ring_jobs import FACTOR, LONGEST_S, MOST_REQUESTED, RingSetting, philly_jobs
from trainyard.learn.settings.splits import episode
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.slot import WORKER

SMALL = RingSetting(nodes=2, jobs=12)


def test_the_same_seed_gives_the_same_jobs():
    assert philly_jobs(SMALL, 3) == philly_jobs(SMALL, 3)
    assert philly_jobs(SMALL, 3) != philly_jobs(SMALL, 4)
    assert episode(SMALL, 4).jobs == philly_jobs(SMALL, 4)
    assert episode(SMALL, 3).speed is episode(SMALL, 4).speed


def test_jobs_are_elastic_and_keep_their_batch():
    for job in philly_jobs(RingSetting(16, 500), 0):
        assert 1 == job.least_gpus <= job.gpus <= MOST_REQUESTED
        assert job.most_gpus == FACTOR * job.gpus
        assert 1 <= job.duration_s <= LONGEST_S
        assert job.profile.scaling == "strong"


@pytest.mark.parametrize("load", [0.5, 2.0])
def test_jobs_come_at_the_rate_of_the_load(load):
    """Over a long time; bursts and busy weeks take long to even out."""
    setting = RingSetting(64, 40_000, load)
    jobs = philly_jobs(setting, 0)
    work = sum(job.gpus * job.duration_s for job in jobs)
    capacity = 8 * setting.nodes * jobs[-1].arrival_s
    assert work / capacity == pytest.approx(load, rel=0.5)


def test_episodes_are_decided_by_workers_only():
    env, draw = BatchEnv(partial(episode, SMALL), 2, episodes=2), np.random.default_rng(0)
    seen = env.reset()
    while not env.idle:
        of_jobs = seen.mask[:, 1:].reshape(2, -1, ACTIONS)
        assert not np.delete(of_jobs, WORKER, axis=2).any()
        seen, _ = env.step((draw.random(seen.mask.shape) * seen.mask).argmax(axis=1))
    assert sorted(outcome.episode for outcome in env.outcomes) == [0, 1]
    assert all(outcome.avg_jct > 0.4 for outcome in env.outcomes)
