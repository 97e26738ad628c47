"""Ways out of poor states, by hand on two and three jobs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from trainyard.learn.explore import way_out
from trainyard.policy.size.dl2.slot import STOP

WORKER, SERVER, BOTH = 1, 2, 3  # of the first job; three more for each further one


def slots(*jobs, apart=True, width=3):
    """One slot with jobs of so many workers and servers, and room for more."""
    workers, servers = np.zeros((2, 1, width), dtype=np.int64)
    for i, (own, others) in enumerate(jobs):
        workers[0, i], servers[0, i] = own, others
    kind = np.zeros((1, width), dtype=np.int64)
    return SimpleNamespace(
        batch=1,
        width=width,
        count=np.array([len(jobs)]),
        jobs=SimpleNamespace(workers=workers, servers=servers, kind=kind),
        kinds=SimpleNamespace(apart=np.array([apart]), names=["kind"]),
    )


def step(here, forbidden=()):
    mask = np.ones((1, 1 + 3 * here.width), dtype=np.bool_)
    mask[0, list(forbidden)] = False
    (action,) = way_out(here, mask)
    return action


@pytest.mark.parametrize(
    ("workers", "servers", "action"),
    [(1, 1, STOP), (10, 1, STOP), (11, 1, SERVER), (1, 10, STOP), (1, 11, WORKER), (21, 2, SERVER)],
)
def test_more_than_ten_times_is_too_many(workers, servers, action):
    assert step(slots((workers, servers))) == action


def test_jobs_without_servers_need_none():
    assert step(slots((11, 0), apart=False)) == STOP


def test_the_job_far_behind_gets_a_pair():
    assert step(slots((10, 10), (1, 1))) == STOP  # ten times as many tasks are not too many
    assert step(slots((11, 10), (1, 1))) == 3 + BOTH


def test_the_job_far_behind_gets_a_worker_if_it_has_no_servers():
    assert step(slots((11, 0), (1, 0), apart=False)) == 3 + WORKER
    assert step(slots((10, 0), (1, 0), apart=False)) == STOP


def test_empty_places_are_nobody():
    assert step(slots((8, 8))) == STOP


def test_the_first_step_that_is_legal_is_taken():
    crowd = slots((30, 2), (1, 1), (1, 1))
    assert step(crowd) == SERVER
    assert step(crowd, [SERVER]) == 3 + BOTH
    assert step(crowd, [SERVER, 3 + BOTH]) == 6 + BOTH
    assert step(crowd, [SERVER, 3 + BOTH, 6 + BOTH]) == STOP
