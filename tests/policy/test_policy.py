"""One decision of a whole policy: when stages are asked, what a plan holds, and the stages' defaults."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from policy_cases import fair, nodes_of, room_of, snapshot_of
from trainyard.model.allocation import Plan
from trainyard.model.job import Job
from trainyard.policy.choose.starts import start_alone
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.place.pack import Pack
from trainyard.policy.policy import UNCHANGED, Policy
from trainyard.policy.request import Request
from trainyard.policy.stages import Chosen, Order, Shapes, Size
from trainyard.policy.tune.proportional import Proportional


def job(name, gpus=2, duration_s=100.0, **more):
    return Job(name, 0.0, gpus, duration_s=duration_s, **more)


CLUSTER = nodes_of(4)


class Waking(Srtf):
    """An order that wants to be asked again at 7."""

    def wake_s(self, snapshot, changes):
        return 7.0


class Said(Size):
    """As requested, with something to say."""

    def __init__(self, **notes):
        self.notes = notes

    def shapes(self, snapshot, ranked):
        gpus = snapshot.table.column(2)[ranked].astype(np.int64)
        return Chosen(Shapes(gpus), self.notes)


class Later(Said):
    """And a time to be asked again, if any."""

    def __init__(self, at=9.0):
        super().__init__()
        self.at = at

    def wake_s(self, snapshot, changes):
        return self.at


class Improving(Pack):
    """Notes what it is asked to improve, and stops everybody."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def improve(self, snapshot, draft):
        self.asked.append((dict(draft.changes), draft.room.total))
        draft.rewrite(dict.fromkeys(snapshot.target))


def test_a_plan_keeps_what_runs_and_names_what_changes():
    snapshot = snapshot_of(CLUSTER, [job("a"), job("b"), job("c")], {"a": {"n0": 2}})
    plan = Policy().decide(snapshot)
    assert plan.changes == {"b": fair(CLUSTER, {"n0": 2})}
    assert sorted(plan.allocations(snapshot.target)) == ["a", "b"]


@pytest.mark.parametrize("held", [None, {"a": {"n0": 2}}])
def test_a_plan_wakes_at_the_first_time_that_a_stage_names(held):
    """Also if the plan changes nothing."""
    snapshot = snapshot_of(CLUSTER, [job("a")], held)
    for size, at in ((Said(), 7.0), (Later(), 7.0), (Later(5.0), 5.0), (Later(inf), 7.0)):
        plan = Policy(order=Waking(), size=size).decide(snapshot)
        assert (plan.wake_s, bool(plan.changes)) == (at, held is None)
    assert Policy(order=Srtf(), size=Later()).decide(snapshot).wake_s == 9.0
    assert Policy(order=Srtf(), size=Said()).decide(snapshot).wake_s == inf


def test_stages_are_told_which_changes_they_are_asked_about():
    told = []

    class Told(Srtf):
        def wake_s(self, snapshot, changes):
            told.append(dict(changes))
            return inf

    snapshot = snapshot_of(CLUSTER, [job("a"), job("b", 4)], {"a": {"n0": 2}})
    Policy(order=Told()).decide(snapshot)
    snapshot = snapshot_of(CLUSTER, [job("a"), job("b", 2)], {"a": {"n0": 2}})
    Policy(order=Told()).decide(snapshot)
    assert told == [{}, {"b": fair(CLUSTER, {"n0": 2})}]


def test_nothing_new_is_one_and_the_same_plan():
    snapshot = snapshot_of(CLUSTER, [job("a")], {"a": {"n0": 2}})
    for policy in (Policy(), Policy(order=Srtf()), Policy(order=Srtf(), size=Said())):
        assert policy.decide(snapshot) is UNCHANGED
    assert Plan() == UNCHANGED


def test_notes_make_a_plan_of_their_own():
    snapshot = snapshot_of(CLUSTER, [job("a")], {"a": {"n0": 2}})
    plan = Policy(order=Srtf(), size=Said(mood="fine")).decide(snapshot)
    assert plan.notes == {"mood": "fine"}
    assert plan.changes == {}


def test_a_stage_may_improve_what_was_drafted_even_if_that_is_nothing():
    place = Improving()
    runs = snapshot_of(CLUSTER, [job("a")], {"a": {"n0": 2}})
    before = room_of(runs)
    assert Policy(place=place).decide(runs).changes == {"a": None}
    assert Policy(place=place).decide(snapshot_of(CLUSTER, [job("a")])).changes == {}
    assert place.asked == [({}, 2), ({"a": fair(CLUSTER, {"n0": 2})}, 2)]
    assert room_of(runs) == before


class Refused(Fifo):
    """Must not be asked."""

    def heads(self, snapshot):
        raise AssertionError("nobody can start")

    def rank(self, snapshot):
        raise AssertionError("nobody can start")


def test_without_preemption_nobody_is_ranked_if_nobody_can_start():
    full = snapshot_of(CLUSTER, [job("a", 4), job("b")], {"a": {"n0": 4}})
    assert Policy(order=Refused()).decide(full) is UNCHANGED
    all_run = snapshot_of(CLUSTER, [job("a")], {"a": {"n0": 2}})
    assert Policy(order=Refused()).decide(all_run) is UNCHANGED


def test_whole_gangs_without_preemption_stop_nobody_and_others_may():
    jobs = [job("long", 4, 500.0), job("short", 4, 10.0)]
    held = {"long": {"n0": 4}}
    assert parse_policy("sjf").decide(snapshot_of(CLUSTER, jobs, held)).changes == {}
    plan = parse_policy("srtf").decide(snapshot_of(CLUSTER, jobs, held))
    assert plan.changes == {"long": None, "short": fair(CLUSTER, {"n0": 4})}


def test_defaults_are_the_plainest_stages():
    policy = Policy()
    made = [type(stage).__name__ for stage in (policy.order, policy.size, policy.place, policy.tune)]
    assert made == ["Fifo", "Fixed", "Pack", "Proportional"]
    assert policy.name == "fifo"


# -- defaults of the interfaces ---------------------------------------------------------------------------


class Backwards(Order):
    """The last first."""

    def rank(self, snapshot):
        return np.arange(len(snapshot.table))[::-1]


def test_an_order_has_a_ranking_and_the_rest_follows():
    snapshot = snapshot_of(CLUSTER, [job("a", 3), job("b", 3), job("c", 1)])
    order = Backwards()
    assert [record.job_id for record in order.heads(snapshot)] == ["c", "b", "a"]
    assert order.choose(snapshot, snapshot.table.column(2)).tolist() == [2, 1]
    assert order.wake_s(snapshot, {}) == inf
    assert order.preemptive
    assert order.fill == "greedy"


@pytest.mark.parametrize(
    ("least", "gpus", "sizes"),
    [
        (1, 4, [3, 2, 1]),
        (4, 4, []),
        (3, 4, [3]),
        (10, 16, [14, 13, 12, 11, 10]),
        (30, 40, [35, 31, 30]),
        (31, 40, [35, 31]),
    ],
)
def test_sizes_shrink_by_an_eighth_but_not_below_the_least(least, gpus, sizes):
    elastic = Job("a", 0.0, gpus, duration_s=1.0, min_gpus=least, max_gpus=64)
    assert list(Said().smaller(elastic, gpus)) == sizes


def test_a_size_stage_wants_nothing_special_by_default():
    assert (Size.refusal, Size.cuts) == ("", False)
    assert Said().wake_s(snapshot_of(CLUSTER, []), {}) == inf


def test_a_request_that_names_shares_makes_free_gpus_say_less():
    snapshot = snapshot_of(CLUSTER, [job("a")])
    free, held = snapshot.free.copy(), fair(CLUSTER, {"n0": 1})
    Request(job("a"), 1).take(held, free, snapshot.nodes)
    assert (free.plain, free.gpus, free.cpus, free.memory_gb) == (True, [3], [9.0], [180.0])
    replaced = Request(job("a"), 1)._replace(memory_per_gpu=60.0)
    replaced.take(held, free, snapshot.nodes)
    assert (free.plain, free.gpus) == (False, [2])


class Sparing(Proportional):
    """Shows nobody the first node."""

    def ground(self, snapshot):
        free = snapshot.free.copy()
        free.add(0, -free.gpus[0], 0.0, 0.0)
        return replace(snapshot, free=free, caches={})


@pytest.mark.parametrize("waiting", [1, 2])
def test_what_a_tune_stage_hides_is_hidden_however_many_wait(waiting):
    view = snapshot_of(nodes_of(4), [Job(f"j{i}", 0.0, 2, 10.0) for i in range(waiting)], {}, 0.0)
    policy = Policy("sparing", tune=Sparing())
    assert policy.decide(view).changes == {}
    assert policy.decide(view, explain=True).changes == {}


def test_the_only_job_that_waits_starts_as_one_of_many_would():
    jobs = [Job("runs", 0.0, 2, 100.0), Job("a", 1.0, 2, 10.0)]
    view = snapshot_of(nodes_of(4, 4), jobs, {"runs": {"n0": 2}}, 2.0)
    policy = parse_policy("fifo")
    alone = start_alone(policy, view)
    assert alone == policy.decide(view).changes == policy.decide(view, explain=True).changes
    assert alone == {"a": view.nodes.plain([(0, 2)])}


def test_the_only_job_that_waits_goes_on_waiting_if_it_does_not_fit():
    jobs = [Job("runs", 0.0, 3, 100.0), Job("a", 1.0, 2, 10.0)]
    view = snapshot_of(nodes_of(4), jobs, {"runs": {"n0": 3}}, 2.0)
    assert start_alone(parse_policy("fifo"), view) == {}
    split = snapshot_of(
        nodes_of(4, 4), [*jobs, Job("too", 0.0, 3, 9.0)], {"runs": {"n0": 3}, "too": {"n1": 3}}, 2.0
    )
    assert start_alone(parse_policy("pack(consolidate=require)"), split) == {}
