"""Tenants, priorities, sizes and jobs that must not stop: small cases, worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conftest import checked, finishes
from policy_cases import fair, nodes_of, snapshot_of, two_types, yard_of
from trainyard.core.check import check_plan
from trainyard.core.events import DecisionDue
from trainyard.core.restore import restore
from trainyard.core.saving import snapshot_record
from trainyard.errors import PlanError
from trainyard.files.snapshot import load_snapshot
from trainyard.model.cluster import Cluster, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.tenant import Tenant
from trainyard.policy.grammar import parse_policy
from trainyard.state.lifecycle import State


def shared(*gpus: int, **tenants: dict[str, int]) -> Cluster:
    """Nodes n0, n1, ... and tenants."""
    return replace(nodes_of(*gpus), tenants={n: Tenant(n, **given) for n, given in tenants.items()})


def job(name, gpus=2, tenant="", duration_s=100.0, **more):
    return Job(name, 0.0, gpus, duration_s=duration_s, tenant=tenant, **more)


def decided(cluster, jobs, policy, held=None, now_s=50.0, explain=False):
    """What runs after one decision, with how many GPUs; or why others wait."""
    view = snapshot_of(cluster, jobs, held, now_s)
    plan = parse_policy(policy).decide(view, explain)
    if explain:
        return {job_id: str(why) for job_id, why in plan.why.items()}
    return {job_id: a.gpus for job_id, a in plan.allocations(view.target).items()}


def test_a_limit_keeps_a_tenant_small_and_nobody_waits_behind_it():
    cluster = shared(8, red={"limit": 4})
    jobs = [job("a", 4, "red"), job("b", 2, "red"), job("c", 4, "blue")]
    for policy in (
        "fifo",
        "fifo(fill=easy)",
        "fifo(fill=greedy)",
        "sjf",
        "srtf",
        "las",
        "fairshare",
        "fifo+optimus",
    ):
        assert decided(cluster, jobs, policy) == {"a": 4, "c": 4}
        why = decided(cluster, jobs, policy, explain=True)
        assert why == {"b": "needs 2 GPUs; tenant red may have 4, and others of it come first"}


def test_a_limit_holds_for_growth():
    cluster = shared(8, red={"limit": 3})
    jobs = [job("a", 1, "red", min_gpus=1, max_gpus=8), job("b", 1, min_gpus=1, max_gpus=8)]
    assert decided(cluster, jobs, "srtf+optimus") == {"a": 3, "b": 5}


def test_a_job_that_asks_for_more_than_the_limit_gets_as_much_as_that():
    cluster = shared(8, red={"limit": 3})
    assert decided(cluster, [job("a", 6, "red", min_gpus=1, max_gpus=8)], "fifo") == {"a": 3}
    assert decided(cluster, [job("a", 6, "red", min_gpus=1, max_gpus=8)], "srtf") == {"a": 3}


def test_borrowed_gpus_are_given_back_by_whoever_loses_least():
    """Checkpoints every 30, 40 and 1,000 s: after 50 s the borrowers lose 2 x 20, 2 x 10, 2 x 50 GPU-s."""
    cluster = shared(6, red={"guaranteed": 2})
    every = {"x": 30.0, "y": 40.0, "z": 1000.0}
    jobs = [job(name, 2, "blue", 1000.0, checkpoint_s=s) for name, s in every.items()]
    held = {name: {"n0": 2} for name in every}
    assert decided(cluster, [*jobs, job("a", 2, "red")], "srtf", held) == {"a": 2, "x": 2, "z": 2}
    assert decided(cluster, [*jobs, job("a", 2, "green")], "fifo", held).keys() == {"x", "y", "z"}


def test_restarts_count_as_loss():
    cluster = shared(4, red={"guaranteed": 2})
    jobs = [job("x", 2, "blue", 1000.0, checkpoint_s=45.0), job("y", 2, "blue", 1000.0, checkpoint_s=40.0)]
    held = {"x": {"n0": 2}, "y": {"n0": 2}}
    assert decided(cluster, [*jobs, job("a", 2, "red")], "las", held) == {"a": 2, "y": 2}
    slow, quick = Profile(restart_s=60.0), Profile(restart_s=10.0)
    saved = [
        replace(jobs[0], checkpoint_s=0.0, profile=quick),
        replace(jobs[1], checkpoint_s=0.0, profile=slow),
    ]
    assert decided(cluster, [*saved, job("a", 2, "red")], "srtf", held) == {"a": 2, "y": 2}


def test_without_preemption_a_guarantee_is_a_place_at_the_front():
    cluster = shared(4, red={"guaranteed": 2})
    jobs = [job("x", 4, "blue"), job("y", 2, "blue"), job("a", 2, "red")]
    result = checked(cluster, jobs, "fifo")
    assert finishes(result) == {"x": 200.0, "y": 300.0, "a": 100.0}  # x does not fit beside a, y waits behind


def test_a_guarantee_goes_before_the_priority_of_who_borrows():
    cluster = shared(4, red={"guaranteed": 4})
    jobs = [job("x", 4, "blue", priority=9), job("a", 4, "red")]
    assert decided(cluster, jobs, "srtf") == {"a": 4}
    assert decided(cluster, jobs, "srtf", {"x": {"n0": 4}}) == {"a": 4}
    assert decided(cluster, jobs, "fifo", {"x": {"n0": 4}}) == {"x": 4}


@pytest.mark.parametrize(
    "policy", ["fifo", "sjf", "srtf", "las", "ftf", "fairshare", "srtf+optimus", "sia", "gavel"]
)
def test_a_higher_priority_goes_first(policy):
    jobs = [job("a", 4), job("b", 4, duration_s=9e3, priority=1), job("c", 4, priority=-1)]
    assert decided(nodes_of(4), jobs, policy) == {"b": 4}


def test_a_higher_priority_stops_lower_ones_if_the_order_does_so():
    jobs = [job("a", 4), job("b", 4, duration_s=9e3, priority=1)]
    held = {"a": {"n0": 4}}
    for policy in ("srtf", "las", "tiresias", "ftf", "fairshare", "srtf+steepest", "srtf+market", "srtf+dl2"):
        assert decided(nodes_of(4), jobs, policy, held) == {"b": 4}
    for policy in ("fifo", "sjf", "fifo(fill=easy)", "fifo+optimus", "fifo(fairshare=1)"):
        assert decided(nodes_of(4), jobs, policy, held) == {"a": 4}


def test_a_job_that_must_not_stop_goes_on_at_its_size():
    jobs = [
        job("a", 2, duration_s=9e3, preemptible=False, min_gpus=1, max_gpus=4),
        job("b", 4, duration_s=50.0, priority=3),
    ]
    held = {"a": {"n0": 2}}
    for policy in ("srtf", "srtf+optimus", "las+doubling", "srtf+smd", "sia", "hadar", "srtf+market"):
        assert decided(nodes_of(4), jobs, policy, held)["a"] == 2
    result = checked(nodes_of(4), jobs, "srtf")
    assert [c.after for c in result.story_of("a")].count(State.RUNNING) == 1


def test_sizes_are_rounded_down_and_the_rest_goes_to_others():
    jobs = [
        job("a", 2, duration_s=900.0, min_gpus=1, max_gpus=8, sizes=(1, 2, 4, 8)),
        job("b", 2, duration_s=900.0, min_gpus=1, max_gpus=8),
    ]
    for policy in ("srtf+optimus", "srtf+drf", "srtf+steepest", "las+lookahead"):
        given = decided(nodes_of(7), jobs, policy)
        assert given["a"] in (1, 2, 4)
        assert sum(given.values()) == 7


def test_a_size_of_a_type_is_rounded_down_too():
    jobs = [job("a", 2, duration_s=900.0, min_gpus=1, max_gpus=4, sizes=(2, 4)), job("b", 1, priority=1)]
    for policy in ("market", "sia", "hadar", "gavel"):
        assert decided(two_types(3, 3), jobs, policy)["a"] in (2, 4)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ({"a": 3}, "job a gets 3 GPUs but may run with 1, 2, 4 only"),
        ({"fix": None}, "job fix must not be stopped or resized once it runs"),
        ({"fix": 2}, "job fix must not be stopped or resized once it runs"),
        ({"a": 4}, "tenant red gets 5 GPUs but may have 4"),
    ],
)
def test_plans_that_break_a_rule_are_refused(after, what):
    cluster = shared(8, red={"limit": 4})
    jobs = [
        job("a", 2, "red", min_gpus=1, max_gpus=4, sizes=(1, 2, 4)),
        job("fix", 1, "red", min_gpus=1, max_gpus=2, preemptible=False),
    ]
    yard = yard_of(cluster, jobs, {"fix": {"n0": 1}})
    changes = {name: None if gpus is None else fair(cluster, {"n0": gpus}) for name, gpus in after.items()}
    with pytest.raises(PlanError, match=what):
        check_plan(yard.snapshot(1.0), changes)


def test_backfilling_leaves_the_head_its_part_of_the_limit():
    """The head of red waits for 4 GPUs until 100 s; red's short job may pass it, its long one may not."""
    cluster = shared(6, red={"limit": 4})
    jobs = [job("run", 4), job("head", 4, "red"), job("long", 1, "red", 500.0), job("short", 1, "red", 40.0)]
    assert decided(cluster, jobs, "easy", {"run": {"n0": 4}}) == {"run": 4, "short": 1}
    free = [replace(j, tenant="") for j in jobs]
    assert decided(cluster, free, "easy", {"run": {"n0": 4}}) == {"run": 4, "long": 1, "short": 1}


def test_a_decision_is_the_same_on_a_fork_and_through_a_file(tmp_path):
    cluster = replace(
        uniform_cluster(2, 4), tenants={"red": Tenant("red", 3, 6), "blue": Tenant("blue", 0, 4)}
    )
    jobs = [
        job(f"j{i}", 1 + i % 3, ("red", "blue", "")[i % 3], 100.0 + i, priority=i % 2, preemptible=i != 4)
        for i in range(9)
    ]
    for policy in ("fifo", "srtf", "srtf+optimus", "fairshare+tune", "sia"):
        chosen = parse_policy(policy)
        yard = yard_of(cluster, jobs, {"j4": {"GPU-0": 2}, "j8": {"GPU-1": 3}}, policy)
        yard.handle(DecisionDue(30.0))
        view = yard.snapshot(60.0)
        path = tmp_path / "s.json"
        path.write_text(json.dumps(snapshot_record(view)))
        plans = [
            chosen.decide(v)
            for v in (view, view, view.fork(), restore(load_snapshot(path))[0].snapshot(60.0))
        ]
        assert all(plan.changes == plans[0].changes for plan in plans)
