"""EASY backfilling: reservations by hand, and whole runs against a plain replay."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from policy_cases import fair, nodes_of, snapshot_of, yard_of
from trainyard.core.events import ReservationMade
from trainyard.model.allocation import Allocation, Share
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation as Window
from trainyard.policy.choose.reservation import Reservation
from trainyard.policy.draft import Draft
from trainyard.policy.place.pack import Pack
from trainyard.policy.request import Request

FOUR = nodes_of(4)


def job(name, gpus, duration_s):
    return Job(name, 0.0, gpus, duration_s=duration_s)


def reserved(cluster, jobs, held, now_s=0.0, started=None, **rules):
    """The reservation of the job `head`."""
    snapshot = snapshot_of(cluster, jobs, held, now_s, **rules)
    head = next(each for each in jobs if each.job_id == "head")
    draft = Draft(snapshot)
    for name, allocation in (started or {}).items():
        draft.commit(Request(snapshot.table.of[name].job, allocation.gpus), allocation)
    return Reservation(draft, Request(head, head.gpus), Pack())


def allows(made, name, allocation):
    """Whether this job may start beside the reservation."""
    return made.allows(made.snapshot.table.of[name], allocation)


def on_first(gpus):
    return fair(FOUR, {"n0": gpus})


def test_the_head_starts_when_enough_have_ended():
    jobs = [job("short", 1, 50.0), job("long", 2, 100.0), job("head", 2, 10.0)]
    held = {"short": {"n0": 1}, "long": {"n0": 2}}
    assert reserved(FOUR, jobs, held).start_s == 50.0
    jobs[2] = job("head", 3, 10.0)
    assert reserved(FOUR, jobs, held).start_s == 100.0


def test_beside_the_head_only_what_it_leaves_is_free():
    jobs = [job("runs", 2, 100.0), job("head", 3, 10.0)]
    made = reserved(FOUR, jobs, {"runs": {"n0": 2}})
    assert made.beside.gpus == [1]
    assert made.beside.cpus == [3.0]


def test_what_was_started_in_this_decision_ends_too():
    jobs = [job("runs", 2, 100.0), job("new", 1, 30.0), job("head", 2, 10.0)]
    made = reserved(FOUR, jobs, {"runs": {"n0": 2}}, started={"new": on_first(1)})
    assert made.start_s == 30.0
    assert made.end_s(made.snapshot.table.of["new"], on_first(1)) == 30.0


def test_ends_count_from_now_and_from_the_end_of_a_stall():
    jobs = [job("runs", 4, 100.0), job("head", 4, 10.0)]
    held = {"runs": {"n0": 4}}
    assert reserved(FOUR, jobs, held, now_s=40.0).start_s == 100.0
    assert reserved(FOUR, jobs, held, start_s=30.0).start_s == 130.0
    assert reserved(FOUR, jobs, held, now_s=40.0, start_s=30.0).start_s == 130.0


def test_a_head_that_never_fits_delays_nobody():
    made = reserved(FOUR, [job("head", 5, 10.0), job("other", 4, 1e6)], {})
    assert made.start_s == math.inf
    assert allows(made, "other", on_first(4))


@pytest.mark.parametrize(("duration_s", "allowed"), [(100.0, True), (100.5, False)])
def test_who_ends_in_time_may_pass(duration_s, allowed):
    jobs = [job("runs", 2, 100.0), job("head", 4, 10.0), job("next", 2, duration_s)]
    made = reserved(FOUR, jobs, {"runs": {"n0": 2}})
    assert allows(made, "next", on_first(2)) is allowed


def test_who_ends_late_may_use_what_the_head_leaves_once():
    jobs = [job("runs", 2, 100.0), job("head", 3, 10.0), job("a", 1, 500.0), job("b", 1, 500.0)]
    made = reserved(FOUR, jobs, {"runs": {"n0": 2}})
    assert allows(made, "a", on_first(1))
    assert not allows(made, "b", on_first(1))


def test_who_ends_in_time_takes_nothing_of_what_the_head_leaves():
    jobs = [job("runs", 2, 100.0), job("head", 3, 10.0), job("a", 1, 50.0), job("b", 1, 500.0)]
    made = reserved(FOUR, jobs, {"runs": {"n0": 2}})
    assert allows(made, "a", on_first(1))
    assert allows(made, "b", on_first(1))


@pytest.mark.parametrize(
    ("cpus", "memory_gb", "allowed"), [(3.0, 60.0, True), (3.5, 60.0, False), (3.0, 61.0, False)]
)
def test_cpus_and_memory_beside_the_head_count_too(cpus, memory_gb, allowed):
    jobs = [job("runs", 2, 100.0), job("head", 3, 10.0), job("late", 1, 500.0)]
    made = reserved(FOUR, jobs, {"runs": {"n0": 2}})
    assert allows(made, "late", Allocation((Share("n0", 1, 0, cpus, memory_gb),))) is allowed


def test_every_node_of_a_gang_counts():
    """Beside the head one GPU stays free on n1 and none on n0."""
    cluster = nodes_of(2, 2)
    jobs = [job("runs", 1, 100.0), job("head", 3, 10.0), job("late", 2, 500.0), job("small", 1, 500.0)]
    made = reserved(cluster, jobs, {"runs": {"n0": 1}})
    assert made.beside.gpus == [0, 1]
    assert not allows(made, "late", fair(cluster, {"n0": 1, "n1": 1}))
    assert made.beside.gpus == [0, 1]
    assert allows(made, "small", fair(cluster, {"n1": 1}))
    assert made.beside.gpus == [0, 0]


def replayed(rows, gpus):
    """Start times of EASY backfilling on one node, by a plain loop over all moments."""
    start, end = {}, {}
    now, waiting = 0, []
    while len(start) < len(rows):
        waiting += [i for i, (arrival, _, _) in enumerate(rows) if arrival == now]
        free = gpus - sum(rows[i][1] for i in start if end[i] > now)
        head = None
        for i in list(waiting):
            _, size, duration = rows[i]
            if head is None and size > free:
                head, shadow, spare = i, *shadow_of(rows, start, end, now, free, size)
            elif size <= free and (head is None or now + duration <= shadow or size <= spare):
                if head is not None and now + duration > shadow:
                    spare -= size
                start[i], end[i] = now, now + duration
                free -= size
                waiting.remove(i)
        now += 1
    return [float(start[i]) for i in range(len(rows))]


def shadow_of(rows, start, end, now, free, size):
    """When the head can start, and what is free beside it then."""
    for i in sorted((i for i in start if end[i] > now), key=lambda i: (end[i], f"j{i}")):
        free += rows[i][1]
        if free >= size:
            return end[i], free - size
    raise AssertionError("the head fits when all have ended")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(1, 4), st.integers(1, 12)), min_size=2, max_size=9
    ).map(sorted)
)
def test_runs_are_those_of_a_plain_replay(rows):
    jobs = [Job(f"j{i}", float(at), gpus, float(length)) for i, (at, gpus, length) in enumerate(rows)]
    result = checked(FOUR, jobs, "fifo(fill=easy)")
    started = dict(zip(result.outcomes.job_id, result.outcomes.start_s.tolist(), strict=True))
    assert [started[each.job_id] for each in jobs] == replayed(rows, 4)


def with_windows(gpus, jobs, held, *windows, now_s=0.0):
    """The EASY reservation of the job `head` beside reservations of nodes."""
    yard = yard_of(nodes_of(*gpus), jobs, held)
    for i, (node, from_s, to_s, tenant) in enumerate(windows):
        yard.handle(ReservationMade(0.0, Window(f"r{i}", from_s, to_s, (node,), tenant)))
    head = next(each for each in jobs if each.job_id == "head")
    return Reservation(Draft(yard.snapshot(now_s)), Request(head, head.gpus), Pack())


RUN = {"r": {"n0": 4}, "s": {"n1": 4}}


def test_a_node_that_will_be_reserved_is_not_counted_on():
    """At 50 s n1 is free, but in maintenance since 40 s: the head has to wait for n0 at 100 s."""
    jobs = [job("r", 4, 100.0), job("s", 4, 50.0), job("head", 5, 10.0), job("c", 1, 80.0)]
    made = with_windows((4, 4, 1), jobs, RUN, ("n1", 40.0, 500.0, ""))
    assert made.start_s == 100.0
    assert made.allows(made.snapshot.table.of["c"], fair(nodes_of(4, 4, 1), {"n2": 1}))
    assert with_windows((4, 4, 1), jobs, RUN).start_s == 50.0


def test_a_node_in_maintenance_comes_back():
    """Before, the head was never expected to start, so that everybody could pass it for ever."""
    jobs = [job("r", 4, 50.0), job("head", 8, 10.0), job("c", 1, 1000.0)]
    made = with_windows((4, 4, 1), jobs, {"r": {"n0": 4}}, ("n1", 0.0, 60.0, ""))
    assert made.start_s == 60.0
    jobs[1] = job("head", 9, 10.0)
    made = with_windows((4, 4, 1), jobs, {"r": {"n0": 4}}, ("n1", 0.0, 60.0, ""))
    assert not made.allows(made.snapshot.table.of["c"], fair(nodes_of(4, 4, 1), {"n2": 1}))


def test_a_reservation_frees_the_nodes_of_others_for_its_tenant():
    jobs = [job("r", 4, 500.0), job("s", 4, 500.0), Job("head", 0.0, 4, 10.0, tenant="red")]
    assert with_windows((4, 4), jobs, RUN, ("n1", 30.0, 90.0, "red")).start_s == 30.0
    assert with_windows((4, 4), jobs, RUN, ("n1", 30.0, 90.0, "blue")).start_s == 90.0


def test_who_is_on_nodes_that_the_head_may_not_use_does_not_delay_it():
    jobs = [job("r", 4, 100.0), job("head", 4, 10.0), Job("b", 0.0, 2, 900.0, tenant="blue")]
    made = with_windows((4, 2), jobs, {"r": {"n0": 4}}, ("n1", 0.0, 500.0, "blue"))
    assert (made.start_s, made.shut) == (100.0, 0b10)
    assert made.allows(made.snapshot.table.of["b"], fair(nodes_of(4, 2), {"n1": 2}))
