"""Choosing anew who runs: who stays, who stops, and what is tried where there is no room."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from conftest import SERVED
from policy_cases import drafted, names, nodes_of, snapshot_of, two_types
from purity_cases import live_moments, random_scene
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.choose.selection import Choice
from trainyard.policy.choose.sizes import sizes_to_try
from trainyard.policy.draft import Draft
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Chosen, Shapes, Size


def job(name, gpus, duration_s=100.0, **more):
    return Job(name, 0.0, gpus, duration_s=duration_s, **more)


def elastic(name, gpus, least=1, most=8, duration_s=100.0):
    return Job(name, 0.0, gpus, duration_s=duration_s, min_gpus=least, max_gpus=most)


def selection(policy, cluster, jobs, held=None, now_s=0.0, **rules):
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    return Reselection(chosen, Draft(snapshot_of(cluster, jobs, held, now_s, **rules)))


def changes(policy, *args, **more):
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    found = drafted(lambda draft: Reselection(chosen, draft).run(), snapshot_of(*args, **more))
    return {name: None if a is None else dict(a.workers) for name, a in found.items()}


def chosen(made):
    ranked = made.selection.ranked()
    shapes = made.policy.size.shapes(made.snapshot, ranked).shapes
    return made.chooser(shapes)(made.selection, ranked, shapes)


class Given(Size):
    """Shapes as told."""

    def __init__(self, *gpus, servers=None):
        self.gpus, self.servers = gpus, servers

    def shapes(self, snapshot, ranked):
        by_name = dict(zip(sorted(snapshot.table.of), self.gpus, strict=True))
        gpus = np.array([by_name[name] for name in names(snapshot, ranked)], dtype=np.int64)
        return Chosen(Shapes(gpus, None if self.servers is None else np.array(self.servers)))


def sized(*gpus, order="srtf"):
    return Policy(order=parse_policy(order).order, size=Given(*gpus))


def test_all_that_fit_start():
    assert changes("srtf", nodes_of(4), [job("a", 2), job("b", 2)]) == {"a": {"n0": 2}, "b": {"n0": 2}}


def test_a_shorter_job_takes_the_place_of_a_longer_one():
    jobs = [job("long", 4), job("short", 2, 10.0)]
    assert changes("srtf", nodes_of(4), jobs, {"long": {"n0": 4}}) == {"long": None, "short": {"n0": 2}}


def test_who_runs_and_comes_first_is_not_touched():
    jobs = [job("short", 2, 10.0), job("long", 2), job("longest", 2, 500.0)]
    held = {"short": {"n0": 2}, "longest": {"n0": 2}}
    assert changes("srtf", nodes_of(4), jobs, held) == {"longest": None, "long": {"n0": 2}}
    held = {"short": {"n0": 2}, "long": {"n0": 2}}
    assert changes("srtf", nodes_of(4), jobs, held) == {}


def test_a_job_that_finds_no_place_makes_room_for_those_behind_it():
    """Two GPUs are free on two nodes: b has to be together, c does not."""
    jobs = [job("r0", 1, 1.0), job("r1", 1, 1.0), job("b", 2, 10.0), job("c", 1, 20.0), job("d", 1, 30.0)]
    held = {"r0": {"n0": 1}, "r1": {"n1": 1}}
    found = changes("srtf+pack(consolidate=require)", nodes_of(2, 2), jobs, held)
    assert sorted(found) == ["c", "d"]


def test_jobs_that_ask_for_the_same_find_no_place_either():
    jobs = [job("r", 1), job("a", 2), job("b", 2), job("c", 2, cpus=6.0), job("d", 1)]
    made = selection("srtf", nodes_of(4), jobs, {"r": {"n0": 1}})
    of = made.snapshot.table.of

    def alike(name):
        return names(made.snapshot, np.flatnonzero(made.realisation._alike(of[name].row)))

    assert alike("a") == ["a", "b", "c"]
    assert alike("c") == ["c"]
    made.draft.changes["b"] = None  # placed before
    assert alike("a") == ["a", "c"]


def test_sizes_that_stay_keep_their_nodes_and_others_move():
    jobs = [elastic("a", 2), elastic("b", 2)]
    held = {"a": {"n0": 2}, "b": {"n1": 2}}
    assert changes(sized(2, 2), nodes_of(4, 4), jobs, held) == {}
    assert changes(sized(2, 3), nodes_of(4, 4), jobs, held) == {"b": {"n1": 3}}
    assert changes(sized(2, 0), nodes_of(4, 4), jobs, held) == {"b": None}


def test_sizes_beyond_the_cluster_leave_the_later_job_waiting():
    jobs = [elastic("a", 3, duration_s=10.0), elastic("b", 3)]
    assert changes(sized(3, 3), nodes_of(4), jobs) == {"a": {"n0": 3}}
    assert changes(sized(2, 2), nodes_of(4), jobs) == {"a": {"n0": 2}, "b": {"n0": 2}}


def test_a_size_that_no_node_has_room_for_is_cut():
    """Each node has one GPU left, and c is not to span nodes."""
    jobs = [job("a", 1), job("b", 1), elastic("c", 2)]
    held = {"a": {"n0": 1}, "b": {"n1": 1}}
    together = replace(sized(1, 1, 2), place=parse_policy("pack(consolidate=require)").place)
    assert changes(together, nodes_of(2, 2), jobs, held) == {"c": {"n0": 1}}


def test_sizes_to_try_shrink_by_an_eighth_to_the_least():
    made = selection(sized(20), nodes_of(20), [elastic("a", 20, least=11, most=20)])
    (tried,), smaller = made.snapshot.table.jobs, made.policy.size.smaller
    assert list(sizes_to_try(tried, 20, smaller)) == [20, 18, 16, 14, 13, 12, 11]
    assert list(sizes_to_try(tried, 12, smaller)) == [12, 11]
    assert list(sizes_to_try(tried, 0, smaller)) == []


def test_servers_shrink_with_the_workers_then_alone():
    made = selection(sized(4), nodes_of(4), [elastic("a", 4, least=2, most=4)])
    (record,), sizes = made.snapshot.table.records, made.realisation._sizes
    assert list(sizes(record, 4, 6)) == [(4, 6), (3, 4), (2, 3), (2, 1)]
    assert list(sizes(record, 4, 0)) == [(4, 0), (3, 0), (2, 0)]
    assert list(sizes(record, 2, 1)) == [(2, 1)]


def test_without_preemption_running_jobs_keep_what_no_size_is_told_for():
    jobs = [elastic("a", 2), elastic("b", 2)]
    held = {"a": {"n0": 2}}
    assert changes(sized(0, 2, order="fifo"), nodes_of(4), jobs, held) == {"b": {"n0": 2}}
    assert changes(sized(0, 3, order="fifo"), nodes_of(4), jobs, held) == {}


def test_without_preemption_whom_a_larger_job_would_stop_stays():
    """a should grow to all four GPUs; b must not be stopped for that, and then a has no room to grow."""
    jobs = [elastic("a", 2), elastic("b", 2)]
    held = {"a": {"n0": 2}, "b": {"n0": 2}}
    assert changes(sized(4, 2, order="fifo"), nodes_of(4), jobs, held) == {}
    assert changes(sized(3, 1, order="fifo"), nodes_of(4), jobs, held) == {"a": {"n0": 3}, "b": {"n0": 1}}


@pytest.mark.parametrize(("fill", "expected"), [("strict", ["a", "b"]), ("greedy", ["a", "b", "c", "d"])])
def test_a_strict_order_sizes_nobody_behind_the_first_that_cannot_fit(fill, expected):
    """At their smallest a and b fill four of five GPUs; c needs two more, d behind it one."""
    jobs = [elastic("a", 2, least=2), elastic("b", 2, least=2), elastic("c", 2, least=2), elastic("d", 1)]
    made = selection(f"fifo(fill={fill})+drf", nodes_of(5), jobs, {"a": {"n0": 2}})
    assert names(made.snapshot, made.selection.ranked()) == expected


def test_running_jobs_come_first_where_nobody_may_be_stopped():
    jobs = [elastic("w", 1), elastic("x", 1), elastic("y", 1), elastic("z", 1)]
    made = selection("fifo+drf", nodes_of(4), jobs, {"z": {"n0": 1}, "x": {"n0": 1}})
    assert names(made.snapshot, made.selection.ranked()) == ["x", "z", "w", "y"]
    made.selection.stay[made.snapshot.table.of["z"].row] = True
    assert names(made.snapshot, made.selection.ranked()) == ["z", "x", "w", "y"]


def test_who_stays_does_not_move_to_a_faster_type_either():
    """Else a would take b's GPUs again and again, and the choice would never end."""
    jobs = [elastic("a", 2), Job("b", 0.0, 2, duration_s=100.0, gpu_type="V100")]
    made = selection(sized(2, 2, order="fifo"), two_types(), jobs, {"a": {"k": 2}, "b": {"v": 2}})
    made.selection.stay[:] = True
    choice = chosen(made)
    assert (choice.target.tolist(), choice.types.tolist()) == ([2.0, 2.0], [-1, -1])
    made.run()
    assert made.draft.changes == {}


def test_who_is_barred_is_not_ranked():
    made = selection("srtf+drf", nodes_of(4), [elastic("a", 1), elastic("b", 1)])
    barred = np.array([name == "a" for name in names(made.snapshot, range(2))])
    made.selection.barred = barred
    assert names(made.snapshot, made.selection.ranked()) == ["b"]


def test_a_mixed_cluster_takes_the_fast_type_first():
    jobs = [job("a", 2, 10.0), job("b", 2, 20.0), job("c", 1, 30.0)]
    assert changes("srtf", two_types(), jobs) == {"a": {"v": 2}, "b": {"k": 2}}


def test_a_job_on_slow_gpus_is_placed_anew_where_that_pays():
    jobs = [job("a", 2)]
    assert changes("srtf", two_types(), jobs, {"a": {"k": 2}}, restart_s=10.0) == {"a": {"v": 2}}
    assert changes("srtf", two_types(), jobs, {"a": {"k": 2}}, restart_s=1000.0) == {}


def test_cuts_try_what_one_node_can_take():
    cluster = nodes_of(4, 4)
    made = selection("sia", cluster, [elastic("a", 6, least=2)], {})
    scratch = made.snapshot.free.copy()
    assert list(made.realisation._cuts(elastic("a", 6, least=2), (6,), scratch)) == [(6,), (4,)]
    assert list(made.realisation._cuts(elastic("a", 6, least=2), (4,), scratch)) == [(4,)]
    assert list(made.realisation._cuts(elastic("a", 6, least=4), (6,), scratch)) == [(6,), (4,)]
    assert list(made.realisation._cuts(elastic("a", 6, least=5), (6,), scratch)) == [(6,)]


def test_cuts_are_for_stages_that_want_them_and_for_one_type():
    jobs = [elastic("a", 6, least=2)]
    made = selection("gavel", nodes_of(4, 4), jobs)
    assert list(made.realisation._cuts(elastic("a", 6, least=2), (6,), made.snapshot.free.copy())) == [(6,)]
    made = selection("sia", two_types(4, 4), jobs)
    assert list(made.realisation._cuts(elastic("a", 6, least=1), (3, 3), made.snapshot.free.copy())) == [
        (3, 3)
    ]
    assert list(made.realisation._cuts(elastic("a", 6, least=1), (0, 6), made.snapshot.free.copy())) == [
        (0, 6),
        (0, 4),
    ]


def test_nothing_is_said_by_whole_gangs():
    made = selection("srtf", nodes_of(4), [job("a", 2)])
    made.run()
    assert made.notes == {}


@pytest.mark.parametrize(("servers", "changed"), [((0, 0), []), ((3, 0), []), ((1, 0), ["a"]), ((0, 2), [])])
def test_who_runs_with_other_servers_than_it_should_is_placed_anew(servers, changed):
    """`a` runs with three servers and `b` waits; 0 asks for no certain number."""
    jobs = [job("a", 3, profile=SERVED), job("b", 3, profile=SERVED)]
    made = selection(sized(3, 0), nodes_of(4), jobs, {"a": {"n0": 3}})
    held = made.snapshot.target["a"]
    made.snapshot.target["a"] = Allocation((held.shares[0]._replace(servers=3),))
    choice = Choice(np.array([0]), np.array([3.0, 0.0]), servers=np.array(servers))
    assert names(made.snapshot, made.realisation._changed(choice).nonzero()[0]) == changed


# -- how often is it tried ---------------------------------------------------------------------------------


def test_what_nobody_can_do_without_goes_on(monkeypatch):
    """A chooser that stops who may not be stopped, again and again: before, that was an endless loop."""
    made = selection("fifo(fill=greedy)+optimus", nodes_of(4), [job("a", 2), job("b", 1)], {"a": {"n0": 2}})
    nobody = Choice(np.zeros(0, dtype=np.int64), np.zeros(2))
    monkeypatch.setattr(made, "chooser", lambda shapes: lambda *_: nobody)
    made.run()
    assert made.draft.changes == {}


@pytest.mark.parametrize(
    "policy", ["fifo(fill=greedy)+optimus+random+greedy", "sjf+drf+random+greedy", "srtf+doubling+spread"]
)
def test_attempts_are_bounded(policy, monkeypatch):
    """At any moment of runs with late stops, failures and cancels, n jobs need at most 2 n + 1 attempts."""
    tried: dict[int, int] = {}
    attempt = Reselection._attempt

    def counted(made):
        tried[id(made)] = tried.get(id(made), 0) + 1
        assert tried[id(made)] <= 2 * len(made.snapshot.table) + 1
        return attempt(made)

    monkeypatch.setattr(Reselection, "_attempt", counted)
    for seed in range(4):
        draw = Random(f"{policy}-{seed}")
        for _ in live_moments(random_scene(draw), parse_policy(policy), draw, lambda _: True, 60):
            tried.clear()
    assert tried
