"""Why a job waits: every sentence once, from a state that calls for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from policy_cases import nodes_of, snapshot_of, two_types, yard_of
from trainyard.core.events import NodeDrained, NodeFailed, NodeLeft, ReservationMade
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.model.reservation import Reservation
from trainyard.model.tenant import Tenant
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.place.pack import Pack
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Chosen, Shapes, Size


def job(name, gpus, duration_s=100.0, **more):
    return Job(name, 0.0, gpus, duration_s=duration_s, **more)


def reasons(policy, cluster, jobs, held=None):
    why = parse_policy(policy).decide(snapshot_of(cluster, jobs, held), explain=True).why
    return {job_id: str(refusal) for job_id, refusal in why.items()}


RUNS, HELD = job("runs", 3), {"runs": {"n0": 3}}


def test_too_few_are_free():
    told = reasons("fifo", nodes_of(4), [RUNS, job("head", 4), job("next", 2)], HELD)
    assert told == {
        "head": "needs 4 GPUs; 1 is free",
        "next": "needs 2 GPUs; 1 is free, and 1 job comes first",
    }


def test_a_single_gpu_is_named_so():
    told = reasons("fifo", nodes_of(3), [RUNS, job("one", 1)], HELD)
    assert told == {"one": "needs 1 GPU; 0 are free"}


def test_gpus_of_a_type_are_counted_by_type():
    jobs = [job("runs", 1), job("fast", 2, gpu_type="V100"), job("slow", 3, gpu_type="K80")]
    told = reasons("fifo", two_types(2, 2), jobs, {"runs": {"v": 1}})
    assert told["fast"] == "needs 2 V100 GPUs; 1 is free"
    assert told["slow"] == "needs 3 K80 GPUs; 2 are free, and 1 job comes first"


def test_who_stands_behind_the_head_of_a_strict_order():
    told = reasons("fifo", nodes_of(4), [RUNS, job("head", 2), job("small", 1)], HELD)
    assert told["small"] == "waits behind head: the order is strict"


def test_who_would_delay_the_head():
    jobs = [RUNS, job("head", 4), job("small", 1, duration_s=500.0)]
    told = reasons("fifo(fill=easy)", nodes_of(4), jobs, HELD)
    assert told["small"] == "would delay head, which comes first"


def test_who_finds_no_node_delays_nobody():
    """Two GPUs are free, on two nodes: b and its like must be together, whoever comes first."""
    jobs = [job("r0", 1), job("r1", 1), job("head", 4), job("b", 2), job("c", 2)]
    held = {"r0": {"n0": 1}, "r1": {"n1": 1}}
    told = reasons("fifo(fill=easy)+pack(consolidate=require)", nodes_of(2, 2), jobs, held)
    assert told["head"] == "needs 4 GPUs; 2 are free"
    assert told["b"] == told["c"] == "needs 2 GPUs; 2 are free, but not where it could use them"


class Unwilling(Size):
    """Gives nobody anything."""

    refusal = "is not admitted: not today"

    def shapes(self, snapshot, ranked):
        return Chosen(Shapes(np.zeros_like(ranked)))


def test_what_a_size_stage_says():
    busy = snapshot_of(nodes_of(4), [job("r", 1), job("a", 1)], {"r": {"n0": 1}})  # else a would be rescued
    why = Policy(size=Unwilling()).decide(busy, explain=True).why
    assert {name: str(refusal) for name, refusal in why.items()} == {"a": "is not admitted: not today"}
    assert why["a"].kind == "size"


HUNGRY = Profile("hungry", scaling="weak", tables=Tables(cpu_memory=((1, 10, 1.0), (3, 10, 3.0))))


@pytest.mark.parametrize(
    ("policy", "more"),
    [("fifo", {"cpus": 7.0}), ("fifo+greedy", {"profile": HUNGRY}), ("fifo", {"memory_gb": 200.0})],
)
def test_gpus_without_their_cpus_and_memory(policy, more):
    busy = job("busy", 1, cpus=8.0, memory_gb=100.0)
    told = reasons(policy, nodes_of(4), [busy, job("a", 2, **more)])
    assert told == {"a": "needs 2 GPUs; 3 are free, but not with the CPUs and memory that it needs"}


def test_gpus_in_the_wrong_place():
    jobs = [job("r0", 1), job("r1", 1), job("a", 2)]
    told = reasons("fifo+pack(consolidate=require)", nodes_of(2, 2), jobs, {"r0": {"n0": 1}, "r1": {"n1": 1}})
    assert told == {"a": "needs 2 GPUs; 2 are free, but not where it could use them"}


def test_exactly_as_many_as_are_free_are_enough():
    told = reasons("fifo", nodes_of(4), [RUNS, job("head", 1, cpus=30.0)], HELD)
    assert told == {"head": "needs 1 GPU; 1 is free, but not with the CPUs and memory that it needs"}


def test_an_elastic_job_needs_its_fewest_where_sizes_are_chosen():
    jobs = [job("runs", 3), job("a", 4, min_gpus=2, max_gpus=8)]
    assert reasons("srtf", nodes_of(4), jobs, HELD)["a"] == "needs 4 GPUs; 1 is free"
    assert reasons("srtf+drf", nodes_of(4), jobs, HELD)["a"] == "needs 2 GPUs; 1 is free"


def test_a_preemptive_order_is_never_called_strict():
    jobs = [job("runs", 3, duration_s=10.0), job("a", 2), job("b", 2, duration_s=50.0)]
    told = reasons("srsf", nodes_of(4), jobs, HELD)
    assert list(told) == ["b", "a"]  # in the order in which they would be served
    assert told["a"] == "needs 2 GPUs; 1 is free, and 1 job comes first"
    assert "strict" not in told["b"]


def test_who_is_stopped_is_told_why():
    jobs = [job("runs", 3), job("short", 2, duration_s=1.0)]
    assert reasons("srtf", nodes_of(4), jobs, HELD) == {"runs": "needs 3 GPUs; 2 are free"}


class Forgetful(Fifo):
    """Ranks nobody but the first."""

    def rank(self, snapshot):
        return super().rank(snapshot)[:1]


def test_who_is_not_ranked_is_told_too():
    snapshot = snapshot_of(nodes_of(1), [job("a", 1), job("b", 1)])
    assert list(Policy(order=Forgetful("greedy")).decide(snapshot, explain=True).why) == ["b"]


class Swapping(Pack):
    """Gives the GPUs of whoever starts to another."""

    def improve(self, snapshot, draft):
        (had,) = draft.changes.values()
        draft.rewrite({"b": had})


def test_reasons_are_of_what_comes_out_in_the_end():
    snapshot = snapshot_of(nodes_of(4), [job("a", 4), job("b", 4)])
    plan = Policy(place=Swapping()).decide(snapshot, explain=True)
    assert (list(plan.changes), list(plan.why)) == (["b"], ["a"])


def test_who_waits_on_purpose_needs_what_it_asks_for():
    """AlloX keeps the job for the faster GPUs, which are free in a second."""
    jobs = [job("r", 2, duration_s=1.0), job("a", 2, min_gpus=1, max_gpus=4)]
    why = parse_policy("allox").decide(snapshot_of(two_types(2, 2), jobs, {"r": {"v": 2}}), explain=True).why
    assert str(why["a"]) == "its size stage gives it nothing now"
    assert why["a"].needs == 2


@pytest.mark.parametrize(
    "policy", ["fifo", "srtf", "srtf+drf", "sia", "fifo(fill=greedy)+tune", "ftf", "easy"]
)
def test_everybody_who_waits_is_told_and_nobody_else(policy):
    jobs = [job(f"j{i}", 1 + i % 4, duration_s=10.0 * (7 * i % 11) + 1.0) for i in range(9)]
    snapshot = snapshot_of(nodes_of(4, 3), jobs, {"j3": {"n0": 4}})
    plan = parse_policy(policy).decide(snapshot, explain=True)
    assert plan[:3] == parse_policy(policy).decide(snapshot)[:3]
    assert sorted([*plan.why, *plan.allocations(snapshot.target)]) == sorted(snapshot.table.of)
    assert not parse_policy(policy).decide(snapshot).why


def shared(*gpus, **tenants):
    return replace(nodes_of(*gpus), tenants={name: Tenant(name, **more) for name, more in tenants.items()})


def test_who_comes_first_by_priority_is_the_head():
    """`late` has the higher priority: it is the head of the strict queue, and `early` waits behind it."""
    jobs = [RUNS, job("early", 1), job("late", 4, priority=5)]
    told = reasons("fifo", nodes_of(4), jobs, HELD)
    assert told == {
        "late": "needs 4 GPUs; 1 is free",
        "early": "waits behind late: the order is strict",
    }
    assert list(told) == ["late", "early"]


def test_who_is_within_a_guarantee_comes_first():
    cluster = shared(4, red={"guaranteed": 4})
    jobs = [RUNS, job("blue", 1, tenant="blue", priority=9), job("red", 4, tenant="red")]
    assert reasons("fifo", cluster, jobs, HELD)["blue"] == "waits behind red: the order is strict"


def test_classes_count_under_preemption_too():
    jobs = [job("runs", 4, 9.0, preemptible=False), job("a", 1, 9.0), job("b", 1, 99.0, priority=1)]
    told = reasons("srtf", nodes_of(4), jobs, {"runs": {"n0": 4}})
    assert told == {
        "b": "needs 1 GPU; 0 are free",
        "a": "needs 1 GPU; 0 are free, and 1 job comes first",
    }


def test_who_waits_for_a_limit_blocks_nobody():
    cluster = shared(4, red={"limit": 3})
    jobs = [job("runs", 3, tenant="red"), job("red", 1, tenant="red"), job("b", 4), job("c", 4)]
    told = reasons("fifo", cluster, jobs, HELD)
    assert told["red"].startswith("needs 1 GPU; tenant red may have 3")
    assert told["b"] == "needs 4 GPUs; 1 is free"
    assert told["c"] == "needs 4 GPUs; 1 is free, and 1 job comes first"


@pytest.mark.parametrize("event", [NodeFailed, NodeDrained])
def test_nodes_that_are_down_are_told(event):
    yard = yard_of(two_types(2, 4), [job("a", 6), job("b", 3, gpu_type="V100"), job("c", 5, gpu_type="K80")])
    yard.handle(event(1.0, "k"))
    shut = "; 4 more are on nodes that are down or drained"
    why = {j: str(r) for j, r in parse_policy("fifo").decide(yard.snapshot(2.0), explain=True).why.items()}
    assert why == {
        "a": f"needs 6 GPUs; 2 are free{shut}",
        "b": "needs 3 V100 GPUs; 2 are free, and 1 job comes first",
        "c": f"needs 5 K80 GPUs; 0 are free, and 2 jobs come first{shut}",
    }


def test_nodes_that_left_are_not_down():
    yard = yard_of(nodes_of(2, 4), [job("runs", 1), job("a", 2)], {"runs": {"n0": 1}})
    yard.handle(NodeLeft(1.0, "n1"))
    why = parse_policy("fifo").decide(yard.snapshot(2.0), explain=True).why
    assert str(why["a"]) == "needs 2 GPUs; 1 is free"


def test_maintenance_is_told():
    yard = yard_of(nodes_of(1, 4), [job("a", 5), job("b", 1)])
    yard.handle(ReservationMade(1.0, Reservation("r", 0.0, 50.0, ("n0",))))
    why = parse_policy("fifo").decide(yard.snapshot(2.0), explain=True).why
    assert str(why["a"]) == "needs 5 GPUs; 4 are free; 1 more is reserved for maintenance"
