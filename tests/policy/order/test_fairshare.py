"""Fair share: hand-computed times at which usage by weight is even, and how it mixes with other orders."""

from __future__ import annotations

import json
from math import log, log2

import pytest

from conftest import checked, complaint
from policy_cases import names, nodes_of, snapshot_of
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.restore import restore
from trainyard.core.saving import snapshot_record
from trainyard.core.yard import Yard
from trainyard.files.snapshot import load_snapshot
from trainyard.model.cluster import Cluster, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.tenant import Tenant
from trainyard.policy.grammar import parse_policy
from trainyard.state.lifecycle import State
from trainyard.state.usage import WEEK_S, Usage

LONG = 10 * WEEK_S


def starts(result, job_id):
    return [c.time_s for c in result.story_of(job_id) if c.after is State.RUNNING]


def job(name, tenant, arrival_s=0.0, gpus=8, duration_s=LONG, user=""):
    return Job(name, arrival_s, gpus, duration_s=duration_s, tenant=tenant, user=user)


def weighted(**weights: float) -> Cluster:
    return Cluster("c", nodes_of(8).nodes, {}, {n: Tenant(n, weight=w) for n, w in weights.items()})


@pytest.mark.parametrize(
    ("weights", "even"),
    [
        # After a week alone with 8 GPUs, with half-life 1/l: U = 8/l (1 - 1/2). The other one then runs: even
        # when 4/l x = 8/l (1 - x), x = 2/3.
        ({}, log2(3 / 2)),
        ({"old": 1, "new": 1}, log2(3 / 2)),
        ({"old": 2, "new": 1}, log2(5 / 4)),  # 2 x = 8 (1 - x)
        ({"old": 1, "new": 2}, log2(2)),  # 4 x = 4 (1 - x)
        ({"old": 1, "new": 4}, log2(3)),  # 4 x = 2 (1 - x)
    ],
)
def test_who_used_the_cluster_alone_last_week_waits_until_usage_by_weight_is_even(weights, even):
    jobs = [job("a", "old"), job("b", "new", WEEK_S)]
    result = checked(weighted(**weights), jobs, "fairshare", until_s=4 * WEEK_S)
    assert starts(result, "b")[0] == WEEK_S  # at once
    assert starts(result, "a")[1] == pytest.approx(WEEK_S * (1 + even), abs=1e-3)


def test_a_shorter_half_life_forgets_sooner():
    """After an hour alone, half-life an hour: the same as with weeks, but in hours."""
    jobs = [job("a", "old"), job("b", "new", 3600.0)]
    result = checked(nodes_of(8), jobs, "fairshare(half_life_s=3600)", until_s=8000.0)
    assert starts(result, "a")[1] == pytest.approx(3600 * (1 + log2(1.5)), abs=1e-3)


def test_those_that_are_even_take_turns_of_a_slice():
    jobs = [job("a", "red"), job("b", "blue")]
    result = checked(nodes_of(8), jobs, "fairshare(slice_s=100)", until_s=450.0)
    assert starts(result, "a") == pytest.approx([0.0, 200.0, 400.0], abs=1e-3)
    assert starts(result, "b") == pytest.approx([100.0, 300.0], abs=1e-3)


def test_a_slice_is_at_least_ten_restarts():
    jobs = [job("a", "red"), job("b", "blue")]
    result = checked(nodes_of(8), jobs, "fairshare(slice_s=100)", restart_s=30.0, until_s=350.0)
    assert starts(result, "b") == [300.0]


def test_users_of_a_tenant_share_what_it_gets():
    jobs = [job("a", "red", user="ann"), job("b", "red", 3600.0, user="bob")]
    result = checked(nodes_of(8), jobs, "fairshare(half_life_s=3600)", until_s=8000.0)
    assert starts(result, "b")[0] == 3600.0
    assert starts(result, "a")[1] == pytest.approx(3600 * (1 + log2(1.5)), abs=1e-3)


def test_a_user_with_nothing_used_does_not_help_a_tenant_that_used_much():
    jobs = [
        *(
            job("a", "old", gpus=8, duration_s=1000.0, user="ann"),
            job("hog", "new", 1000.0, duration_s=100.0),
        ),
        job("b", "old", 1000.0, duration_s=100.0, user="bob"),
        job("c", "new", 1000.0, duration_s=100.0, user="cat"),
    ]
    result = checked(nodes_of(8), jobs, "fairshare")
    assert starts(result, "c") == [1100.0]
    assert starts(result, "b") == [1200.0]


def test_usage_follows_the_formula():
    usage, pace = Usage(100.0), log(2) / 100
    usage.change(job("a", "t"), 10.0, 4)
    usage.change(job("b", "t"), 110.0, 2)
    assert usage.gpu_s(("t",), 110.0) == pytest.approx(4 / pace / 2)
    assert usage.gpu_s(("t",), 210.0) == pytest.approx(4 / pace / 4 + 6 / pace / 2)
    usage.change(job("a", "t"), 210.0, -6)
    assert usage.gpu_s(("t",), 310.0) == pytest.approx((4 / pace / 4 + 6 / pace / 2) / 2)
    assert usage.gpu_s(("nobody",), 310.0) == 0.0


def test_without_a_count_active_jobs_are_counted():
    jobs = [job("a", "red", gpus=4), job("b", "red", gpus=4), job("c", "blue", gpus=4)]
    view = snapshot_of(nodes_of(8), jobs, {"a": {"n0": 4}}, 5000.0)
    assert view.usage is None
    assert names(view, parse_policy("fairshare").order.rank(view)) == ["c", "a", "b"]


def test_the_part_that_fair_share_decides():
    """By length c, b, a; by usage the two of blue come before red's. Means of places, by hand."""
    jobs = [
        job("a", "blue", gpus=2, duration_s=9e3),
        job("b", "blue", gpus=2, duration_s=6e3),
        job("c", "red", gpus=2, duration_s=3e3),
        job("x", "red", gpus=2, duration_s=9e4),
    ]
    view = snapshot_of(nodes_of(2), jobs, {"x": {"n0": 2}}, 5000.0)

    def ranked(policy):
        return names(view, parse_policy(policy).order.rank(view))

    assert ranked("srtf") == ranked("srtf(fairshare=0)") == ["c", "b", "a", "x"]
    assert ranked("fairshare") == ranked("srtf(fairshare=1)") == ["a", "b", "c", "x"]
    # places 0 and 2, 1 and 1, 2 and 0: with a half all have 1, and the order itself decides
    assert ranked("srtf(fairshare=0.5)") == ["c", "b", "a", "x"]
    assert ranked("srtf(fairshare=0.6)") == ["a", "b", "c", "x"]
    assert ranked("fifo(fairshare=1)") == ["a", "b", "c"]


def test_without_a_part_an_order_is_itself():
    assert type(parse_policy("srtf(fairshare=0)").order) is type(parse_policy("srtf").order)
    assert not parse_policy("fifo(fairshare=0.5)").order.preemptive
    assert parse_policy("fifo(fill=easy,fairshare=0.5)").order.fill == "easy"


@pytest.mark.parametrize(
    ("policy", "what"),
    [
        ("srtf(fairshare=2)", "fairshare is 2; it must be from 0 to 1"),
        ("srtf(fairshare=-1)", "fairshare is -1; it must be from 0 to 1"),
        ("srtf(fairshare=0.5,half_life_s=0)", "half_life_s is 0; it must be above 0"),
        ("fairshare(half_life_s=-5)", "half_life_s is -5; it must be above 0"),
        ("fairshare(fairshare=1)", "unknown parameter 'fairshare'"),
        ("pack(fairshare=1)", "unknown parameter 'fairshare'"),
    ],
)
def test_parts_and_half_lives_that_make_no_sense(policy, what):
    assert what in complaint(parse_policy, policy)


def test_a_file_keeps_the_usage(tmp_path):
    policy = parse_policy("fairshare")
    yard = Yard(uniform_cluster(1), policy.decide, half_life_s=policy.order.half_life_s)
    for i, (tenant, user) in enumerate([("red", "ann"), ("red", ""), ("", "bob")]):
        yard.handle(JobSubmitted(0.0, job(f"j{i}", tenant, gpus=4, user=user)))
    yard.handle(DecisionDue(0.0))
    view = yard.snapshot(1234.5)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(snapshot_record(view)))
    again = restore(load_snapshot(path))[0]
    assert again.usage is not None
    assert again.usage.record() == view.usage.record()
    assert view.fork().usage.record() == view.usage.record()
    assert policy.decide(again.snapshot(1234.5)) == policy.decide(view)


def test_usage_is_counted_only_where_it_is_needed():
    assert Yard(nodes_of(8), parse_policy("srtf").decide).usage is None
    assert Yard(weighted(red=2), parse_policy("srtf").decide).usage is not None
