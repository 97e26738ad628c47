"""Jobs on nodes with their ladders: books, slack and changes by hand."""

from __future__ import annotations

import pytest

from policy_cases import fair, nodes_of, snapshot_of
from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.policy.tune.synergy.occupants import Occupants, _same

# A node has 3 CPUs and 60 GB for each GPU.
HUNGRY = Profile(
    "hungry", scaling="weak", tables=Tables(cpu_memory=((3.0, 60.0, 1.0), (6.0, 60.0, 2.0))), restart_s=10.0
)
MODEST = Profile("modest", scaling="weak", tables=Tables(cpu_memory=((1.0, 20.0, 1.0),)), restart_s=10.0)
CLUSTER = nodes_of(4, 4)


def job(name, profile=None, gpus=1, **more):
    return Job(name, 0.0, gpus, samples=1000.0, profile=profile, **more)


def occupants(jobs, held, planned=None):
    """Jobs that run on `held`, and what a plan changes."""
    snapshot = snapshot_of(CLUSTER, jobs, held)
    changes = {
        name: None if seats is None else fair(CLUSTER, seats) for name, seats in (planned or {}).items()
    }
    return Occupants(snapshot, changes)


def test_who_runs_and_who_starts():
    made = occupants(
        [job("a"), job("b"), job("c"), job("d")],
        {"a": {"n0": 1}, "b": {"n0": 1}},
        {"b": None, "c": {"n1": 1}},
    )
    assert made.ids == ["a", "c"]
    assert made.starting == [False, True]
    assert made.parts == [[(0, 1)], [(1, 1)]]
    assert made.free_gpus == [3, 3]


def test_who_moves_counts_where_it_goes():
    made = occupants([job("a", gpus=2)], {"a": {"n0": 2}}, {"a": {"n1": 2}})
    assert made.parts == [[(1, 2)]]
    assert made.starting == [False]
    assert made.free_gpus == [4, 2]


def test_a_gang_has_a_part_on_each_of_its_nodes():
    made = occupants([job("a", gpus=5), job("b")], {"a": {"n0": 4, "n1": 1}, "b": {"n1": 1}})
    assert made.ends == [0, 2, 3]
    assert made.owner.tolist() == [0, 0, 1]
    assert made.gpus.tolist() == [4, 1, 1]
    assert made.where().tolist() == [0, 1, 1]
    assert made.by_node() == {0: [(0, 4)], 1: [(0, 1), (1, 1)]}


def test_a_move_changes_the_books():
    made = occupants([job("a", gpus=2), job("b")], {"a": {"n0": 2}, "b": {"n0": 1}})
    assert made.free_gpus == [1, 4]
    made.move(0, 1)
    assert made.parts == [[(1, 2)], [(0, 1)]]
    assert made.free_gpus == [3, 2]
    assert made.by_node() == {0: [(1, 1)], 1: [(0, 2)]}


def test_all_start_at_the_top_of_their_ladders():
    """A hungry job takes twice its CPUs, a modest one a third of CPUs and memory."""
    made = occupants([job("h", HUNGRY, 2), job("m", MODEST)], {"h": {"n0": 2}, "m": {"n0": 1}})
    cpus, memory = made.held()
    assert cpus.tolist() == pytest.approx([4.0, 1 / 3])
    assert memory.tolist() == pytest.approx([2.0, 1 / 3])


def test_slack_is_what_nodes_have_left():
    jobs = [job("g", HUNGRY, 2), job("h", HUNGRY, 2), job("m", MODEST)]
    made = occupants(jobs, {"g": {"n0": 2}, "h": {"n0": 2}, "m": {"n1": 1}})
    cpus, memory = made.slack()
    assert cpus.tolist() == pytest.approx([12.0 - 24.0, 12.0 - 1.0])
    assert memory.tolist() == pytest.approx([0.0, 240.0 - 20.0])


def test_jobs_with_shares_of_their_own_are_no_occupants_but_take_room():
    made = occupants([job("own", gpus=2, cpus=6.0, memory_gb=120.0), job("m", MODEST)], {"m": {"n0": 1}})
    assert made.room(0) == (1.0, 1.0)
    snapshot = snapshot_of(CLUSTER, [job("own", gpus=2, cpus=3.0, memory_gb=60.0), job("m", MODEST)])
    planned = {"own": Allocation((Share("n0", 2, 0, 3.0, 60.0),)), "m": fair(CLUSTER, {"n0": 1})}
    made = Occupants(snapshot, planned)
    assert made.ids == ["m"]
    assert made.room(0) == (pytest.approx(0.75), pytest.approx(0.75))
    assert made.room(1) == (1.0, 1.0)
    assert made.shared.tolist() == [1, 0]
    assert made.free_gpus == [1, 4]
    assert made.slack()[0].tolist() == pytest.approx([12.0 - 3.0 - 1.0, 12.0])
    assert made.changes()["own"] == planned["own"]


def test_changes_are_what_differs():
    made = occupants([job("a"), job("m", MODEST)], {"a": {"n0": 1}, "m": {"n0": 1}})
    changes = made.changes()
    assert list(changes) == ["m"]
    assert changes["m"].shares == (Share("n0", 1, 0, pytest.approx(1.0), pytest.approx(20.0)),)


def test_changes_keep_who_is_stopped_and_who_starts():
    made = occupants(
        [job("a"), job("b"), job("c")], {"a": {"n0": 1}, "b": {"n0": 1}}, {"a": None, "c": {"n1": 1}}
    )
    assert made.changes() == {"a": None, "c": fair(CLUSTER, {"n1": 1})}


def test_a_seat_that_changed_is_a_change():
    made = occupants([job("a")], {"a": {"n0": 1}})
    assert made.changes() == {}
    made.move(0, 1)
    assert made.changes() == {"a": fair(CLUSTER, {"n1": 1})}


def test_a_place_between_rungs_is_a_share_between():
    made = occupants([job("h", HUNGRY)], {"h": {"n0": 1}})
    made.places[0] = 0.5
    assert made.changes()["h"].shares[0].cpus == pytest.approx(4.5)
    made.places[0] = 0.0
    assert made.changes() == {}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (Share("n0", 1, 0, 3.0, 60.0), True),
        (Share("n0", 1, 0, 3.0 + 1e-12, 60.0 - 1e-9), True),
        (Share("n0", 1, 0, 3.0 + 1e-6, 60.0), False),
        (Share("n0", 1, 0, 3.0, 60.0 + 1e-5), False),
        (Share("n0", 1, 1, 3.0, 60.0), False),
        (Share("n1", 1, 0, 3.0, 60.0), False),
    ],
)
def test_the_same_but_for_rounding(other, same):
    assert _same((Share("n0", 1, 0, 3.0, 60.0),), (other,)) is same
    assert not _same((Share("n0", 1, 0, 3.0, 60.0),), (other, other))
