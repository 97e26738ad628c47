"""Menus: one for each kind of job, kept while the cluster is the same."""

from __future__ import annotations

import numpy as np

from policy_cases import snapshot_of, two_types
from trainyard.model.job import Job
from trainyard.policy.menus import Menu, menus_of


def job(name, gpus=1, **more):
    return Job(name, 0.0, gpus, duration_s=100.0, **more)


JOBS = [job("a"), job("b", 2), job("c"), job("d", gpu_type="V100"), job("e", 2)]


class Maker:
    """Notes whom it makes menus for."""

    def __init__(self):
        self.made = []

    def __call__(self, snapshot, record, capacity):
        self.made.append(record.job_id)
        return Menu(np.eye(2, dtype=np.int64) * record.gpus, np.ones(2))


def asked(make, snapshot, names="abcde", capacity=(2, 2)):
    rows = np.array([snapshot.table.of[name].row for name in names], dtype=np.int64)
    return menus_of(snapshot, rows, np.array(capacity), make)


def test_jobs_of_a_kind_share_a_menu():
    make, snapshot = Maker(), snapshot_of(two_types(), JOBS)
    menus = asked(make, snapshot)
    assert make.made == ["a", "b", "d"]
    assert menus.of.tolist() == [0, 1, 0, 2, 1]
    assert [int(menu.by_type.max()) for menu in menus.each()] == [1, 2, 1, 1, 2]


def test_no_jobs_no_menus():
    menus = asked(Maker(), snapshot_of(two_types(), JOBS), "")
    assert (menus.kinds, menus.of.size) == ([], 0)


def test_menus_are_kept_for_the_kinds_that_are_there_and_the_same_cluster():
    make, snapshot = Maker(), snapshot_of(two_types(), JOBS)
    first = asked(make, snapshot, "ab")
    assert all(x is y for x, y in zip(asked(make, snapshot, "ba").kinds, first.kinds[::-1], strict=True))
    assert make.made == ["a", "b"]
    asked(make, snapshot, "a")  # nobody asks for b's any more
    asked(make, snapshot, "ab")
    assert make.made == ["a", "b", "b"]
    asked(make, snapshot, "ab", (2, 1))
    assert make.made == ["a", "b", "b", "a", "b"]


def test_without_the_cache_menus_are_the_same():
    make, snapshot = Maker(), snapshot_of(two_types(), JOBS)
    kept = asked(make, snapshot)
    snapshot.caches.clear()
    again = asked(make, snapshot)
    assert kept.of.tolist() == again.of.tolist()
    for menu, other in zip(kept.kinds, again.kinds, strict=True):
        np.testing.assert_array_equal(menu.by_type, other.by_type)
        np.testing.assert_array_equal(menu.speed, other.speed)
