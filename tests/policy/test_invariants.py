"""What must hold for every policy on every workload, with the yard's books recomputed after every event."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import APART, PROFILES, checked
from stage_cases import BY_TYPE, ORDERS, PLACES, SIZES, TUNES, names_in
from trainyard.cli.output import jobs_csv
from trainyard.files.job_check import check_jobs
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.policy.registry import ENTRIES
from trainyard.sim.failures import Failure
from trainyard.state.lifecycle import State

STAGED = ["+".join(stages) for stages in product(ORDERS, SIZES, PLACES, TUNES)]
TYPED = ["+".join(stages) for stages in product(["fifo", "srtf", "ftf"], BY_TYPE, PLACES, TUNES)]
KINDS = [STAGED, STAGED, STAGED, STAGED, [*BY_TYPE, *TYPED]]
SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}


@st.composite
def clusters(draw, types=("V100", "K80")):
    nodes = []
    for i in range(draw(st.integers(1, 4))):
        gpu_type = draw(st.sampled_from(types))
        gpus = draw(st.sampled_from([1, 2, 4]))
        nodes.append(Node(f"n{i}", gpu_type, gpus, 3.0 * gpus, 50.0 * gpus))
    return Cluster("test", tuple(nodes), TYPES)


@st.composite
def workloads(draw, cluster, plain=False):
    jobs = []
    per_type = {t: sum(n.gpus for n in cluster.nodes if n.gpu_type == t) for t in TYPES}
    for i in range(draw(st.integers(1, 12))):
        gpu_type = "" if plain else draw(st.sampled_from(["", "", *(t for t in TYPES if per_type[t])]))
        most = per_type[gpu_type] if gpu_type else cluster.gpus
        gpus = draw(st.integers(1, min(most, 6)))
        elastic = not plain and draw(st.booleans())
        profile = None if plain else draw(st.sampled_from(PROFILES))
        special = not plain and profile is not APART and draw(st.integers(0, 4)) == 0
        jobs.append(
            Job(
                f"j{i}",
                draw(st.sampled_from([0.0, 10.0, 10.0, 55.5, 200.0])),
                gpus,
                duration_s=draw(st.sampled_from([1.0, 7.5, 60.0, 300.0])),
                gpu_type=gpu_type,
                min_gpus=draw(st.integers(1, gpus)) if elastic else None,
                max_gpus=draw(st.integers(gpus, gpus + 4)) if elastic else None,
                cpus=draw(st.sampled_from([1.0, 2.0, 3.0])) * gpus if special else None,
                memory_gb=draw(st.sampled_from([1.0, 50.0])) * gpus if special else None,
                profile=profile,
                weight=draw(st.sampled_from([1.0, 1.0, 2.0])),
                checkpoint_s=draw(st.sampled_from([0.0, 20.0, 1e9])),
            )
        )
    check_jobs(jobs, cluster, "jobs")
    return jobs


@st.composite
def runs(draw, plain=False):
    cluster = draw(clusters(types=("V100",) if plain else ("V100", "K80")))
    options = {
        "round_s": draw(st.sampled_from([None, None, 13.0, 60.0])),
        "restart_s": draw(st.sampled_from([None, 0.0, 5.0])),
        "start_s": draw(st.sampled_from([0.0, 2.0])),
        "seed": draw(st.integers(0, 3)),
    }
    policy = draw(st.sampled_from(draw(st.sampled_from(KINDS))))
    return cluster, draw(workloads(cluster, plain)), policy, options


def test_every_policy_of_the_registry_is_run():
    assert names_in(STAGED + BY_TYPE) == set(ENTRIES)


@SLOW
@given(runs())
def test_every_job_ends_and_nothing_is_over_allocated(run):
    cluster, jobs, policy, options = run
    result = checked(cluster, jobs, policy, **options)  # raises if a book is wrong after any event
    assert result.summary()["completed"] == len(jobs)
    for job in jobs:
        changes = result.story_of(job.job_id)
        assert [c.after for c in changes[:2]] == [State.SUBMITTED, State.WAITING]
        assert changes[-1].after is State.DONE
        assert all(a.after is b.before and a.time_s <= b.time_s for a, b in pairwise(changes))


@SLOW
@given(runs())
def test_gpus_of_a_node_are_never_held_twice(run):
    cluster, jobs, policy, options = run
    result = checked(cluster, jobs, policy, **options)
    spans = {}
    for segment in result.segments():
        assert len(segment.indices) == segment.gpus
        for index in segment.indices:
            spans.setdefault((segment.node, index), []).append((segment.start_s, segment.end_s))
    gpus = {(node.node_id, index) for node in cluster.nodes for index in range(node.gpus)}
    assert set(spans) <= gpus
    assert all(a[1] <= b[0] for own in spans.values() for a, b in pairwise(sorted(own)))


@SLOW
@given(runs(plain=True))
def test_work_is_conserved_and_nobody_beats_the_ideal(run):
    cluster, jobs, policy, options = run
    result = checked(cluster, jobs, policy, **options)
    o = result.outcomes
    for job in jobs:
        changes = result.story_of(job.job_id)
        stall_s, ran_s = options["start_s"], 0.0
        for began, ended in pairwise(changes):
            if began.after is State.RUNNING:
                ran_s += max(0.0, ended.time_s - began.time_s - stall_s)
                stall_s = options["restart_s"] or 0.0
        assert ran_s == pytest.approx(job.duration_s, rel=1e-9)
    assert (o.jct_s >= o.ideal_s * (1 - 1e-9)).all()
    held = sum(s.gpus * (s.end_s - s.start_s) for s in result.segments())
    assert held == pytest.approx(o.gpu_s.sum(), rel=1e-9)


@SLOW
@given(runs())
def test_same_inputs_same_bytes(run):
    cluster, jobs, policy, options = run
    first, second = (checked(cluster, jobs, policy, **options) for _ in range(2))
    assert jobs_csv(first) == jobs_csv(second)
    assert list(first.story) == list(second.story)


@SLOW
@given(runs(), st.data())
def test_node_failures_lose_no_job(run, data):
    cluster, jobs, policy, options = run
    nodes = [n.node_id for n in cluster.nodes]
    times = sorted(data.draw(st.lists(st.floats(0.0, 400.0), max_size=6)))
    failures = [Failure(t, data.draw(st.sampled_from(nodes)), data.draw(st.floats(0.1, 90.0))) for t in times]
    result = checked(cluster, jobs, policy, failures, **options)
    assert result.summary()["completed"] == len(jobs)


@SLOW
@given(runs())
def test_a_fork_does_not_touch_the_original(run):
    from trainyard.core.events import DecisionDue, JobSubmitted
    from trainyard.core.yard import Yard
    from trainyard.policy.grammar import parse_policy

    cluster, jobs, policy, _ = run
    chosen = parse_policy(policy)
    yard = Yard(cluster, chosen.decide)
    for job in jobs[:-1]:
        yard.handle(JobSubmitted(0.0, dataclasses.replace(job, arrival_s=0.0)))
    yard.handle(DecisionDue(0.0))
    twin = yard.snapshot(1.0).fork()
    before = chosen.decide(twin).changes
    yard.handle(JobSubmitted(2.0, jobs[-1]))
    yard.handle(DecisionDue(2.0))
    assert chosen.decide(twin).changes == before
    assert math.isclose(twin.now_s, 1.0)
