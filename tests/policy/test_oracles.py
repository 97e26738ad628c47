"""Policies against exact answers: closed forms, exhaustive search, reservations."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked, finishes
from trainyard.core.validate import validate
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.choose import reservation as backfill
from trainyard.policy.choose import starts as start
from trainyard.policy.choose.walk import greedy
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.drf import Drf
from trainyard.sim.clock import Simulator

FAST = settings(max_examples=150, deadline=None)
times = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=6)


def one_gpu_jobs(pairs):
    return [Job(f"j{i}", float(a), 1, float(d)) for i, (a, d) in enumerate(sorted(pairs))]


@FAST
@given(times)
def test_fifo_on_one_gpu_is_lindleys_recursion(pairs):
    jobs = one_gpu_jobs(pairs)
    result = finishes(checked(uniform_cluster(1, 1), jobs))
    free_at = 0.0
    for job in jobs:
        free_at = max(free_at, job.arrival_s) + job.duration_s
        assert result[job.job_id] == free_at


@FAST
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 3))
def test_fifo_on_k_gpus_is_list_scheduling(durations, gpus):
    jobs = [Job(f"j{i}", 0.0, 1, float(d)) for i, d in enumerate(durations)]
    result = finishes(checked(uniform_cluster(1, gpus), jobs))
    free_at = [0.0] * gpus
    for job in jobs:
        free_at.sort()
        free_at[0] += job.duration_s
        assert result[job.job_id] == free_at[0]


def best_total_jct(jobs):
    """Exhaustive: the best preemptive schedule of one server serves jobs by some fixed priority."""
    best = float("inf")
    for priority in permutations(range(len(jobs))):
        left = [int(job.duration_s) for job in jobs]
        now, total = 0, 0
        while any(left):
            ready = [i for i in priority if left[i] and jobs[i].arrival_s <= now]
            if ready:
                left[ready[0]] -= 1
                if not left[ready[0]]:
                    total += now + 1 - jobs[ready[0]].arrival_s
            now += 1
        best = min(best, total)
    return best


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), min_size=1, max_size=5))
def test_srtf_is_optimal_on_one_server(pairs):
    jobs = one_gpu_jobs(pairs)
    result = checked(uniform_cluster(1, 1), jobs, "srtf")
    assert result.outcomes.jct_s.sum() == pytest.approx(best_total_jct(jobs))


@FAST
@given(st.lists(st.integers(1, 9), max_size=12), st.integers(0, 20))
def test_greedy_selection_equals_the_plain_walk(demand, budget):
    import numpy as np

    taken, left = [], budget
    for gpus in demand:
        taken.append(gpus <= left)
        left -= gpus if taken[-1] else 0
    assert greedy(np.array(demand, dtype=np.float64), budget).tolist() == taken


gangs = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(1, 50)), min_size=2, max_size=10
)


@FAST
@given(gangs, st.sampled_from(["pack", "pack(consolidate=require)", "spread"]))
def test_easy_backfill_never_delays_the_head(rows, place):
    """Whenever a reservation was made, the head starts no later than it says."""
    jobs = [Job(f"j{i}", float(a), g, float(d)) for i, (a, g, d) in enumerate(sorted(rows))]
    promised: dict[str, list[float]] = {}

    class Noted(backfill.Reservation):
        def __init__(self, draft, head, place):
            super().__init__(draft, head, place)
            promised.setdefault(head.job.job_id, []).append(self.start_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "Reservation", Noted)
        result = checked(uniform_cluster(2, 2), list(jobs), f"fifo(fill=easy)+{place}")
    started = dict(zip(result.outcomes.job_id, result.outcomes.start_s, strict=True))
    for job_id, latest in promised.items():
        assert started[job_id] <= min(latest) + 1e-9


@FAST
@given(gangs)
def test_easy_is_work_conserving_where_strict_is_not(rows):
    jobs = [Job(f"j{i}", float(a), g, float(d)) for i, (a, g, d) in enumerate(sorted(rows))]
    policy = parse_policy("fifo(fill=greedy)")
    result = Simulator(uniform_cluster(1, 4), jobs, policy, Rules()).run()
    waits = {
        j: (a, s)
        for j, a, s in zip(
            result.outcomes.job_id, result.outcomes.arrival_s, result.outcomes.start_s, strict=True
        )
    }
    levels = result.timeline
    for job in jobs:
        arrived, started = waits[job.job_id]
        inside = (levels.time_s >= arrived) & (levels.time_s < started)
        assert (levels.gpus[inside] + job.gpus > 4).all()


@FAST
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 5), st.sampled_from([1.0, 2.0])), min_size=1, max_size=6
    ),
    st.integers(1, 16),
)
def test_drf_levels_dominant_shares(rows, gpus):
    """No job with room to grow is behind another by more than one GPU's share."""
    from trainyard.core.events import DecisionDue, JobSubmitted
    from trainyard.core.yard import Yard

    jobs = [
        Job(f"j{i}", 0.0, least, 10.0, min_gpus=least, max_gpus=least + extra, weight=weight)
        for i, (least, extra, weight) in enumerate(rows)
    ]
    yard = Yard(uniform_cluster(1, gpus), parse_policy("drf").decide)
    for job in jobs:
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    validate(yard)
    held = {job.job_id: yard.target[job.job_id].gpus for job in jobs if job.job_id in yard.target}
    for job in jobs:
        if job.job_id not in held or held[job.job_id] == job.most_gpus:
            continue
        for other in jobs:
            if other.job_id in held and held[other.job_id] > other.least_gpus:
                assert (held[other.job_id] - 1) / other.weight <= held[job.job_id] / job.weight + 1e-12
    assert isinstance(parse_policy("drf").size, Drf)
