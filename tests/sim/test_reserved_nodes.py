"""Reservations in simulations: who is stopped, who may start where, and what goes on afterwards."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.sim.failures import Failure

TWO = uniform_cluster(2, 4)
MAINTAINED = replace(TWO, reservations=(Reservation("r1", 100.0, 300.0, ("GPU-0",)),))
VISION = replace(TWO, reservations=(Reservation("r1", 100.0, 300.0, gpus=4, tenant="vision"),))
POLICIES = [
    *("fifo", "easy", "srtf", "las", "tiresias", "srtf+tune", "fifo+random", "srtf+spread", "fairshare"),
    *("srtf+optimus", "las+doubling+tune", "srtf+steepest+tune", "srtf+drf", "market", "gavel", "allox"),
    *("sia(round_s=30)", "hadar(round_s=30)", "srtf+smd"),
]


def finishes(result):
    return dict(zip(result.outcomes.job_id, result.outcomes.finish_s.tolist(), strict=True))


def told(result, job_id):
    return [str(change).partition(": ")[2] for change in result.story_of(job_id)]


def on(result, node):
    """Who had something of a node, from when to when."""
    held = [(s.job_id, s.start_s, s.end_s) for s in result.segments() if s.node == node]
    return sorted(held, key=lambda entry: entry[1])


def test_maintenance_stops_jobs_with_their_work_saved():
    jobs = [Job("a", 0.0, 4, 250.0, checkpoint_s=1e6), Job("b", 0.0, 4, 500.0)]
    result = checked(MAINTAINED, jobs)
    assert on(result, "GPU-0") == [("a", 0.0, 100.0), ("a", 300.0, 450.0)]
    assert on(result, "GPU-1") == [("b", 0.0, 500.0)]
    assert finishes(result) == {"a": 450.0, "b": 500.0}
    assert told(result, "a")[2:] == [
        "a running on GPU-0 x4 (started)",
        "a stopping on GPU-0 x4 (its node is reserved (r1))",
        "a waiting (stopped and saved)",
        "a running on GPU-0 x4 (resumed)",
        "a done (all work done)",
    ]


def test_a_job_that_is_stopped_goes_on_elsewhere():
    result = checked(MAINTAINED, [Job("a", 0.0, 4, 250.0)], restart_s=7.0)
    assert on(result, "GPU-1") == [("a", 100.0, 257.0)]


def test_a_job_that_is_done_when_a_window_begins_is_not_disturbed():
    result = checked(MAINTAINED, [Job("a", 0.0, 4, 100.0)])
    assert finishes(result) == {"a": 100.0}
    assert result.outcomes.restarts.tolist() == [0]


@pytest.mark.parametrize("policy", ["fifo", "srtf", "srtf+optimus"])
def test_windows_begin_on_time_between_rounds_too(policy):
    """The stop is not put off until the next round; whatever starts, starts with a round."""
    jobs = [Job("a", 0.0, 4, 250.0), Job("b", 0.0, 4, 250.0)]
    result = checked(MAINTAINED, jobs, policy, round_s=70.0)
    assert on(result, "GPU-0")[0] == ("a", 0.0, 100.0)
    assert all(start >= 300.0 and start % 70.0 == 0.0 for _, start, _ in on(result, "GPU-0")[1:])


@pytest.mark.parametrize("options", [{}, {"round_s": 70.0}])
def test_the_end_of_a_window_wakes_those_that_wait_for_nothing_else(options):
    only = replace(uniform_cluster(1, 4), reservations=(Reservation("r1", 0.0, 1000.0, ("GPU-0",)),))
    result = checked(only, [Job("a", 5.0, 4, 100.0)], **options)
    assert finishes(result) == {"a": 1150.0 if options else 1100.0}


def test_only_jobs_of_its_tenant_start_in_a_window():
    jobs = [
        Job("a", 0.0, 4, 400.0),
        Job("b", 0.0, 4, 250.0),
        Job("c", 150.0, 2, 60.0),
        Job("v", 150.0, 2, 60.0, tenant="vision"),
        Job("w", 290.0, 2, 60.0, tenant="vision"),
    ]
    result = checked(VISION, jobs, "fifo(fill=greedy)")
    assert on(result, "GPU-0") == [
        *(("a", 0.0, 100.0), ("v", 150.0, 210.0), ("w", 290.0, 350.0)),
        ("c", 300.0, 360.0),  # with the end of the window
    ]
    assert on(result, "GPU-1") == [("b", 0.0, 250.0), ("a", 250.0, 550.0)]


@pytest.mark.parametrize("policy", ["fifo", "easy", "srtf"])
@pytest.mark.parametrize("preemptible", [True, False])
def test_who_only_waits_for_a_reservation_is_passed(policy, preemptible):
    """Else the tenant's own jobs would wait behind those that may not start there."""
    jobs = [
        Job("b", 0.0, 4, 1000.0, preemptible=False),
        Job("a", 110.0, 4, 20.0, preemptible=preemptible),
        Job("v", 150.0, 2, 60.0, tenant="vision"),
    ]
    result = checked(
        replace(VISION, reservations=(Reservation("r1", 100.0, 300.0, ("GPU-1",), "vision"),)), jobs, policy
    )
    assert finishes(result) == {"b": 1000.0, "a": 320.0, "v": 210.0}


def test_a_job_that_must_not_be_stopped_starts_only_where_it_is_over_in_time():
    jobs = [
        Job("short", 10.0, 4, 80.0, preemptible=False),
        Job("long", 10.0, 4, 200.0, preemptible=False),
        Job("late", 20.0, 4, 50.0, preemptible=False),
        Job("stops", 20.0, 1, 400.0),
    ]
    result = checked(MAINTAINED, jobs, "fifo(fill=greedy)")
    assert on(result, "GPU-0") == [("short", 10.0, 90.0), ("stops", 90.0, 100.0)]
    assert on(result, "GPU-1") == [("long", 10.0, 210.0), ("late", 210.0, 260.0), ("stops", 260.0, 650.0)]


def test_a_node_that_fails_in_a_window_is_back_when_both_are_over():
    jobs = [Job("a", 0.0, 4, 50.0), Job("b", 0.0, 4, 999.0), Job("c", 110.0, 4, 50.0)]
    for repair_s, back_s in ((50.0, 300.0), (250.0, 370.0)):
        result = checked(MAINTAINED, jobs, failures=[Failure(120.0, "GPU-0", repair_s)])
        assert on(result, "GPU-0")[-1] == ("c", back_s, back_s + 50.0)


def test_windows_may_follow_each_other():
    windows = (
        Reservation("r1", 100.0, 200.0, ("GPU-0",)),
        Reservation("r2", 200.0, 300.0, ("GPU-0",), "vision"),
    )
    jobs = [Job("a", 0.0, 4, 120.0), Job("b", 0.0, 4, 999.0), Job("v", 0.0, 4, 200.0, tenant="vision")]
    result = checked(replace(TWO, reservations=windows), jobs)
    assert on(result, "GPU-0") == [("a", 0.0, 100.0), ("v", 200.0, 400.0), ("a", 400.0, 420.0)]


MIXED = Cluster(
    "mixed",
    tuple(Node(f"{t}{i}", t, 4, 12.0, 240.0) for t in ("V", "K") for i in range(2)),
    {"V": GpuType("V", 1.0), "K": GpuType("K", 0.5)},
)
JOBS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from([1, 1, 2, 4, 8]),
        st.integers(1, 60),
        st.sampled_from(["", "vision", "speech"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)
SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 40), st.sampled_from(["", "vision"]), st.integers(0, 3)),
    min_size=1,
    max_size=3,
)


def windows_of(spans, cluster):
    """Reservations of single nodes, one after the other on each node."""
    made, upto = [], {}
    for from_s, lasts_s, tenant, at in spans:
        node = cluster.nodes[at % len(cluster.nodes)].node_id
        begins_s = max(10.0 * from_s, upto.get(node, 0.0))
        upto[node] = begins_s + 10.0 * lasts_s
        made.append(Reservation(f"r{len(made) + 1}", begins_s, upto[node], (node,), tenant))
    return tuple(made)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=12)
@given(jobs=JOBS, spans=SPANS, several=st.booleans(), round_s=st.sampled_from([None, None, 45.0]))
def test_nobody_else_runs_in_a_window(policy, jobs, spans, several, round_s):
    cluster = MIXED if several else uniform_cluster(3, 4)
    windows = windows_of(spans, cluster)
    made = [
        Job(f"j{i}", 10.0 * at, gpus, 10.0 * lasts, tenant=tenant, **({"min_gpus": 1} if elastic else {}))
        for i, (at, gpus, lasts, tenant, elastic) in enumerate(jobs)
    ]
    tenant_of = {job.job_id: job.tenant for job in made}
    result = checked(replace(cluster, reservations=windows), made, policy, round_s=round_s)
    for window in windows:
        for who, start_s, end_s in on(result, window.nodes[0]):
            if min(end_s, window.to_s) > max(start_s, window.from_s):
                assert window.tenant
                assert tenant_of[who] == window.tenant
    for job in made:
        times = [change.time_s for change in result.story_of(job.job_id)]
        assert all(before <= after for before, after in pairwise(times))
        assert str(result.story_of(job.job_id)[-1].after) == "done"
