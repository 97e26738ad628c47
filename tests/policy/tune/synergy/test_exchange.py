"""Who sits with whom: seats for newcomers, relief of short nodes, and what an exchange is worth."""

from __future__ import annotations

import numpy as np
import pytest

from policy_cases import fair, nodes_of, snapshot_of
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.policy.tune.synergy.exchange import Regrouping, _seats_for, exchange
from trainyard.policy.tune.synergy.occupants import Occupants

HUNGRY = Profile(
    "hungry", scaling="weak", tables=Tables(cpu_memory=((3.0, 60.0, 1.0), (6.0, 60.0, 2.0))), restart_s=10.0
)
MODEST = Profile("modest", scaling="weak", tables=Tables(cpu_memory=((1.0, 20.0, 1.0),)), restart_s=10.0)
FORGETFUL = Profile(
    "forgetful",
    scaling="weak",
    tables=Tables(cpu_memory=((3.0, 60.0, 1.0), (3.0, 120.0, 2.0))),
    restart_s=10.0,
)
PAIR = nodes_of(2, 2)


def job(name, profile=None, gpus=1, samples=1000.0):
    return Job(name, 0.0, gpus, samples=samples, profile=profile)


def seated(jobs, held, starts=None, cluster=PAIR, **rules):
    snapshot = snapshot_of(cluster, jobs, held, **rules)
    return Occupants(snapshot, {name: fair(cluster, seats) for name, seats in (starts or {}).items()})


def seats(occupants):
    exchange(occupants)
    return {name: parts[0][0] for name, parts in zip(occupants.ids, occupants.parts, strict=True)}


FOUR = [job("h0", HUNGRY), job("h1", HUNGRY), job("m0", MODEST), job("m1", MODEST)]
APART = {"h0": {"n0": 1}, "h1": {"n0": 1}, "m0": {"n1": 1}, "m1": {"n1": 1}}


def test_running_jobs_change_seats_where_that_pays():
    found = seats(seated(FOUR, APART))
    assert found["h0"] != found["h1"]
    assert found["m0"] != found["m1"]


@pytest.mark.parametrize(("restart_s", "moved"), [(660.0, True), (670.0, False)])
def test_what_is_gained_must_exceed_what_restarts_cost(restart_s, moved):
    """Together on n0 two hungry jobs run at 1 each, apart at 5/3: a gain of 4/3.

    The shorter of the two that move has 1000 s left, so 1333 s are gained and two restarts lost.
    """
    found = seats(seated(FOUR, APART, restart_s=restart_s))
    assert (found["h0"] != found["h1"]) is moved


def test_gangs_over_several_nodes_stay():
    jobs = [job("h", HUNGRY, 2), job("m0", MODEST), job("m1", MODEST)]
    made = seated(jobs, {"h": {"n0": 1, "n1": 1}, "m0": {"n0": 1}, "m1": {"n1": 1}})
    exchange(made)
    assert made.parts[0] == [(0, 1), (1, 1)]


def test_nobody_moves_if_no_node_is_short():
    jobs = [job("m0", MODEST), job("m1", MODEST)]
    assert seats(seated(jobs, {"m0": {"n0": 1}, "m1": {"n0": 1}})) == {"m0": 0, "m1": 0}


def test_nobody_moves_if_no_node_has_anything_to_spare():
    jobs = [job(f"h{i}", HUNGRY) for i in range(4)]
    held = {"h0": {"n0": 1}, "h1": {"n0": 1}, "h2": {"n1": 1}, "h3": {"n1": 1}}
    assert seats(seated(jobs, held)) == {"h0": 0, "h1": 0, "h2": 1, "h3": 1}


def test_a_free_seat_is_as_good_as_a_modest_neighbour():
    jobs = [job("h0", HUNGRY), job("h1", HUNGRY)]
    found = seats(seated(jobs, {"h0": {"n0": 1}, "h1": {"n0": 1}}))
    assert sorted(found.values()) == [0, 1]


def test_newcomers_are_dealt_anew_and_runners_stay():
    jobs = [job("r", HUNGRY), job("h", HUNGRY), job("m", MODEST), job("n", MODEST)]
    made = seated(jobs, {"r": {"n0": 1}}, {"h": {"n0": 1}, "m": {"n1": 1}, "n": {"n1": 1}})
    found = seats(made)
    assert found["r"] == 0
    assert found["h"] == 1


WANT_MEMORY = [job("f0", FORGETFUL), job("f1", FORGETFUL), job("m0", MODEST), job("m1", MODEST)]
FULL = {"f0": {"n0": 1}, "f1": {"n0": 1}, "m0": {"n1": 1}, "m1": {"n1": 1}}


@pytest.mark.parametrize(("held", "starts"), [(FULL, {}), ({}, FULL)])
def test_memory_counts_as_much_as_cpus(held, starts):
    found = seats(seated(WANT_MEMORY, held, starts))
    assert found["f0"] != found["f1"]
    assert found["m0"] != found["m1"]


def test_a_node_that_lacks_memory_has_no_cpus_to_spare():
    search = Regrouping(seated(WANT_MEMORY, FULL))
    search.cpus[0] = 5.0
    assert search.memory[0] < 0
    assert search._spare().tolist() == [False, True]
    search.memory[0] = 0.0
    assert search._spare().tolist() == [True, True]


def test_no_free_seat_beside_a_job_that_took_its_own_share():
    """A free GPU of n1 does not mean that there are CPUs for another job."""
    own = Job("own", 0.0, 1, samples=1000.0, cpus=3.0, memory_gb=60.0)
    held = {"h0": {"n0": 1}, "h1": {"n0": 1}, "own": {"n1": 1}}
    assert seats(seated([*FOUR[:2], own], held)) == {"h0": 0, "h1": 0}


def test_slack_and_singles_are_counted_in_cpus_and_gb():
    search = Regrouping(seated(FOUR, APART))
    assert search.cpus.tolist() == pytest.approx([6.0 - 12.0, 6.0 - 2.0])
    assert search.memory.tolist() == pytest.approx([0.0, 80.0])
    assert search.single.node.tolist() == [0, 0, 1, 1]
    assert search.single.cpus.tolist() == pytest.approx([6.0, 6.0, 1.0, 1.0])
    assert search.single.memory.tolist() == pytest.approx([60.0, 60.0, 20.0, 20.0])


def test_what_nodes_lack_is_counted_in_shares_of_a_gpu():
    search = Regrouping(seated(FOUR, APART))
    lack = search._lack(np.array([-6.0, 1.0]), np.array([-30.0, -60.0]), np.array([0, 1]))
    assert lack.tolist() == pytest.approx([2.5, 1.0])
    assert search._short(0)
    assert not search._short(1)
    assert search._spare().tolist() == [False, True]
    assert search._roomy(0).tolist() == [1]


def test_relief_is_how_much_less_both_lack():
    """One hungry job for a modest one: n0 lacks 1 CPU instead of 6, n1 1 instead of none."""
    search = Regrouping(seated(FOUR, APART))
    relief = search._relief(0, np.array([1]), np.array([5.0]), np.array([40.0]))
    assert relief.tolist() == pytest.approx([(6.0 - 1.0 - 1.0) / 3.0], abs=1e-5)


def test_the_exchanges_looked_at_name_a_mate_or_a_free_seat():
    search = Regrouping(seated(FOUR, APART))
    assert [(x, other) for x, _, other in search._exchanges(0)] == [(0, 1), (1, 1)]
    assert {y for _, y, _ in search._exchanges(0)} <= {2, 3}
    alone = Regrouping(seated(FOUR[:2], {"h0": {"n0": 1}, "h1": {"n0": 1}}))
    assert alone._exchanges(0) == [(0, -1, 1), (1, -1, 1)]


def test_an_exchange_keeps_all_books():
    occupants = seated(FOUR, APART)
    search = Regrouping(occupants)
    search._exchange(0, 2, 1)
    assert search.cpus.tolist() == pytest.approx([6.0 - 7.0, 6.0 - 7.0])
    assert search.memory.tolist() == pytest.approx([120.0 - 80.0] * 2)
    assert search.single.node.tolist() == [1, 0, 0, 1]
    assert [parts[0][0] for parts in occupants.parts] == [1, 0, 0, 1]
    assert occupants.free_gpus == [0, 0]


def test_dealing_seats_keeps_all_books():
    jobs = [job("h", HUNGRY), job("f", FORGETFUL), job("m", MODEST), job("n", MODEST)]
    occupants = seated(jobs, {}, {"h": {"n0": 1}, "f": {"n0": 1}, "m": {"n1": 1}, "n": {"n1": 1}})
    search = Regrouping(occupants)
    search._seat_newcomers()
    anew = Regrouping(occupants)
    assert search.cpus.tolist() == pytest.approx(anew.cpus.tolist())
    assert search.memory.tolist() == pytest.approx(anew.memory.tolist())
    assert search.single.node.tolist() == anew.single.node.tolist() != [0, 0, 1, 1]


# -- seats for jobs with the same demand ------------------------------------------------------------------


def dealt(count, demand, seats, cpus, memory):
    """Nodes for so many jobs, and the seats and CPUs that are left."""
    left, room = np.array(seats), np.array([cpus, memory], dtype=np.float64)
    chosen = _seats_for(count, np.array(demand, dtype=np.float64), left, room, np.ones((2, len(seats))))
    return chosen.tolist(), left.tolist(), room[0].tolist()


def test_the_fullest_node_that_they_fit_on_goes_first():
    assert dealt(1, (2, 0), [1, 1], [5, 3], [1, 1]) == ([1], [1, 0], [5, 1])
    assert dealt(2, (2, 0), [2, 2], [5, 3], [1, 1]) == ([0, 1], [1, 1], [3, 1])
    assert dealt(2, (2, 0), [2, 2], [5, 4], [1, 1]) == ([1, 1], [2, 0], [5, 0])


def test_seats_and_memory_count():
    assert dealt(2, (1, 0), [2, 1], [9, 8], [1, 1]) == ([0, 1], [1, 0], [8, 7])
    assert dealt(1, (1, 2), [1, 1], [9, 3], [9, 1]) == ([0], [0, 1], [8, 3])


def test_who_fits_nowhere_goes_where_least_is_lacking():
    assert dealt(1, (4, 0), [1, 1], [3, 1], [0, 0]) == ([0], [0, 1], [-1, 1])
    assert dealt(2, (4, 0), [1, 1], [3, 1], [0, 0]) == ([0, 1], [0, 0], [-1, -3])
