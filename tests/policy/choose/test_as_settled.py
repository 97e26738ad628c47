"""Workers by GPU type as a stage settled them: who stays, who goes first, and what is cut."""

from __future__ import annotations

import numpy as np
import pytest

from policy_cases import TYPES, drafted, names, snapshot_of, two_types
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Profile, Sync, Tables
from trainyard.policy.choose.by_type import as_settled
from trainyard.policy.choose.reselect import Reselection
from trainyard.policy.draft import Draft
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.tune.synergy.stage import Greedy
from trainyard.policy.types.by_type import ByType


class Settled(ByType):
    """Workers of each job by type, as told."""

    def __init__(self, **mix):
        self.mix = mix

    def assign(self, snapshot, ranked, held, capacity):
        told = [self.mix[name] for name in names(snapshot, ranked)]
        return np.array(told, dtype=np.int64).reshape(-1, capacity.size)


class Cutting(Settled):
    cuts = True


def job(name, gpus=2, **more):
    return Job(name, 0.0, gpus, duration_s=100.0, **more)


def selection(stage, jobs, held=None, order="srtf", cluster=None):
    policy = Policy(order=parse_policy(order).order, size=stage)
    return Reselection(policy, Draft(snapshot_of(cluster or two_types(), jobs, held)))


def changes(*args, **more):
    made = selection(*args, **more)
    found = drafted(lambda draft: Reselection(made.policy, draft).run(), made.snapshot)
    return {name: None if a is None else dict(a.workers) for name, a in found.items()}


def chosen(made):
    ranked = made.selection.ranked()
    return as_settled(made.selection, ranked, made.policy.size.shapes(made.snapshot, ranked).shapes)


JOBS = [job("a"), job("b")]


def test_workers_go_to_nodes_of_their_types():
    assert changes(Settled(a=(0, 2), b=(2, 0)), JOBS) == {"a": {"v": 2}, "b": {"k": 2}}
    assert changes(Settled(a=(1, 1), b=(0, 0)), JOBS) == {"a": {"k": 1, "v": 1}}


def test_who_holds_what_it_should_is_not_touched():
    held = {"a": {"v": 2}}
    assert changes(Settled(a=(0, 2), b=(2, 0)), JOBS, held) == {"b": {"k": 2}}
    assert changes(Settled(a=(0, 2), b=(0, 0)), JOBS, held) == {}


def test_as_many_workers_of_another_type_are_a_change():
    held = {"a": {"v": 2}}
    assert changes(Settled(a=(2, 0), b=(0, 2)), JOBS, held) == {"a": {"k": 2}, "b": {"v": 2}}


def test_who_should_have_nothing_stops_if_the_order_may_stop_it():
    held = {"a": {"v": 2}}
    assert changes(Settled(a=(0, 0), b=(0, 2)), JOBS, held) == {"a": None, "b": {"v": 2}}
    assert changes(Settled(a=(0, 0), b=(0, 2)), JOBS, held, "fifo(fill=greedy)") == {}
    assert changes(Settled(a=(0, 0), b=(2, 0)), JOBS, held, "fifo(fill=greedy)") == {"b": {"k": 2}}


def test_without_preemption_the_first_take_what_those_that_stay_leave():
    """a stays on its V100s; b and c want the K80s, which only one of them can have."""
    jobs = [*JOBS, job("c"), job("d", 1)]
    stage = Settled(a=(0, 0), b=(2, 0), c=(2, 0), d=(0, 1))
    assert changes(stage, jobs, {"a": {"v": 2}}, "fifo(fill=greedy)") == {"b": {"k": 2}}
    wider = two_types(v100=3)
    found = changes(stage, jobs, {"a": {"v": 2}}, "fifo(fill=greedy)", wider)
    assert found == {"b": {"k": 2}, "d": {"v": 1}}


def test_without_preemption_a_running_job_may_still_change():
    held = {"a": {"k": 2}}
    assert changes(Settled(a=(0, 2), b=(2, 0)), JOBS, held, "fifo(fill=greedy)") == {
        "a": {"v": 2},
        "b": {"k": 2},
    }


def test_the_largest_part_is_placed_first():
    """On nodes of 2 and 3 the job of three fits only if the job of two does not take the larger node."""
    nodes = (
        Node("x", "V100", 3, 9.0, 180.0),
        Node("y", "V100", 2, 6.0, 120.0),
        Node("k", "K80", 1, 3.0, 60.0),
    )
    cluster = Cluster("c", nodes, TYPES)
    made = selection(
        Settled(a=(1, 0), b=(3, 0), c=(0, 1)), [job("a", 1), job("b", 3), job("c", 1)], cluster=cluster
    )
    choice = chosen(made)
    assert names(made.snapshot, choice.rows)[0] == "b"
    assert sorted(names(made.snapshot, choice.rows)) == ["a", "b", "c"]
    assert choice.target[[made.snapshot.table.of[name].row for name in "abc"]].tolist() == [1.0, 3.0, 1.0]


def test_who_gets_nothing_is_not_placed():
    made = selection(Settled(a=(0, 0), b=(1, 0)), JOBS)
    assert names(made.snapshot, chosen(made).rows) == ["b"]


# -- cutting to one node ----------------------------------------------------------------------------------

SLOW_LINKS = Profile(
    batch=64, compute=Compute(0.0, {"V100": 0.001, "K80": 0.004}), sync=Sync("ring", gradient_mb=5000.0)
)
NO_LINKS = Profile(batch=64, compute=Compute(0.0, {"V100": 0.001, "K80": 0.004}), sync=Sync("none"))
TWO_NODES = Cluster("c", tuple(Node(f"v{i}", "V100", 4, 12.0, 240.0) for i in range(2)), TYPES)


def trained(profile, least=1):
    return Job("a", 0.0, 6, samples=1e6, profile=profile, min_gpus=least, max_gpus=8)


def test_fewer_workers_on_one_node_where_that_is_faster():
    """Six workers over a slow network against four without it."""
    assert changes(Cutting(a=(6,)), [trained(SLOW_LINKS)], cluster=TWO_NODES) == {"a": {"v0": 4}}
    assert changes(Settled(a=(6,)), [trained(SLOW_LINKS)], cluster=TWO_NODES) == {"a": {"v0": 4, "v1": 2}}


def test_all_workers_where_the_network_does_not_matter():
    assert changes(Cutting(a=(6,)), [trained(NO_LINKS)], cluster=TWO_NODES) == {"a": {"v0": 4, "v1": 2}}


def test_no_job_is_cut_below_its_least():
    assert changes(Cutting(a=(6,)), [trained(SLOW_LINKS, 5)], cluster=TWO_NODES) == {"a": {"v0": 4, "v1": 2}}
    assert changes(Cutting(a=(6,)), [trained(SLOW_LINKS, 4)], cluster=TWO_NODES) == {"a": {"v0": 4}}


@pytest.mark.parametrize("stage", [Cutting(a=(9,)), Settled(a=(9,))])
def test_what_does_not_fit_waits_or_is_cut(stage):
    found = changes(stage, [trained(NO_LINKS)], cluster=TWO_NODES)
    assert found == ({"a": {"v0": 4}} if stage.cuts else {})


def test_what_is_placed_is_taken():
    made = selection(Settled(a=(0, 1), b=(0, 1)), [job("a", 1), job("b", 1)])
    assert made.realisation._put_by_type(0, (0, 1))
    assert made.draft.room.gpus == [2, 1]
    assert not made.realisation._put_by_type(1, (0, 2))
    assert made.draft.room.gpus == [2, 1]
    assert list(made.draft.close()) == ["a"]


def test_a_share_has_to_do_where_the_chosen_gpus_never_come_with_more():
    """Alone on the V100s the job could have six CPUs per GPU; the K80s have two each."""
    hungry = Profile("hungry", scaling="weak", tables=Tables(cpu_memory=((2, 32, 1.0), (6, 32, 3.0))))
    nodes = (Node("v0", "V100", 4, 24.0, 128.0), Node("k0", "K80", 2, 4.0, 64.0))
    cluster = Cluster("c", nodes, TYPES)
    stage, order = Settled(a=(0, 1)), parse_policy("srtf").order
    policy = Policy(order=order, size=stage, tune=Greedy())
    snapshot = snapshot_of(cluster, [job("a", 1, profile=hungry)])
    found = drafted(lambda draft: Reselection(policy, draft).run(), snapshot)
    (share,) = found["a"].shares
    assert (share.node, share.gpus, share.cpus) == ("k0", 1, 2.0)


@pytest.mark.parametrize(
    ("wanted", "stay", "gets"),
    [((0, 0), False, [0, 2]), ((2, 0), False, [2, 0]), ((2, 0), True, [0, 2]), ((0, 0), True, [0, 2])],
)
def test_without_preemption_who_gets_nothing_or_may_not_be_stopped_keeps_its_types(wanted, stay, gets):
    made = selection(Settled(a=wanted, b=(0, 0)), JOBS, {"a": {"v": 2}}, "fifo(fill=greedy)")
    made.selection.stay[0] = stay
    assert chosen(made).by_type.tolist() == [gets, [0, 0]]


def test_without_preemption_the_others_run_as_far_as_there_is_room_beside_those_that_stay():
    jobs = [job("c"), job("a", 1), job("b", 1)]
    made = selection(Settled(a=(0, 0), b=(0, 1), c=(2, 0)), jobs, {"a": {"v": 1}}, "fifo(fill=greedy)")
    choice = chosen(made)
    assert dict(zip(names(made.snapshot, range(3)), choice.by_type.tolist(), strict=True)) == {
        "a": [0, 1],
        "b": [0, 1],
        "c": [2, 0],
    }
    assert names(made.snapshot, choice.rows) == ["c", "a", "b"]
    assert choice.moves.tolist() == [True, False, True]
