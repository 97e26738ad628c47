"""The doubling heuristic: goldens of the paper's specification, an exact oracle, trials and resizing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from trainyard.core.events import DecisionDue, JobStopped, JobSubmitted
from trainyard.core.instructions import Start, Stop
from trainyard.core.yard import Yard
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.doubling import double, liked
from trainyard.policy.size.growth import Grower
from trainyard.policy.size.hysteresis import kept
from trainyard.policy.size.optimus import one_by_one

RING = {1: 368, 2: 232, 4: 126, 8: 84}  # minutes of the paper's job as remembered: ring.md, B7


def ring_profile(scaling="weak", **parts):
    rows = tuple((float(w), 0.0, 1e6 / (60 * minutes)) for w, minutes in RING.items())
    return Profile(batch=128, scaling=scaling, tables=Tables(workers_servers=rows), **parts)


def parts(held, target, gpus):
    """GPUs as parts of so many."""
    return held[:, None] / gpus, target[:, None] / gpus


def by_doubling(works, speeds, gpus):
    """Double with speeds given as functions of the number of workers."""
    sizes = [liked(1, gpus) for _ in works]
    paces = [[1 / f(w) for w in options] for f, options in zip(speeds, sizes, strict=True)]
    return double(sizes, paces, works, gpus)


def by_one(works, speeds, gpus):
    """Optimus' one at a time, with workers only."""
    worker, none = (1 / gpus, 0.0, 0.0), (0.0, 0.0, 0.0)
    tables = [np.array([[0.0], *([f(w)] for w in range(1, gpus + 1))]) for f in speeds]
    return one_by_one([Grower(table, (1, 0), worker, none) for table in tables], works, {})[:, 0]


def cost(works, speeds, sizes):
    return sum(q / f(w) for q, f, w in zip(works, speeds, sizes, strict=True))


def optimum(works, speeds, gpus, options):
    """Least sum of times by dynamic programming over the capacity."""
    best = np.zeros(gpus + 1)
    for q, f in zip(works, speeds, strict=True):
        after = np.full(gpus + 1, np.inf)
        for w in options:
            after[w:] = np.minimum(after[w:], best[: gpus + 1 - w] + q / f(w))
        best = after
    return best[gpus]


def trap(w):
    power = 1 << (w.bit_length() - 1)
    return w**0.9 if power == w else 0.8 * power**0.9


def test_golden_of_three_smooth_jobs():
    works, speeds = (10, 8, 6), (lambda w: w**0.9, lambda w: w**0.5, lambda w: w**0.7)
    doubled, greedy = by_doubling(works, speeds, 8), by_one(works, speeds, 8)
    assert doubled.tolist() == [4, 2, 2]
    assert cost(works, speeds, doubled) == pytest.approx(12.2220, abs=5e-5)
    assert cost(works, speeds, doubled) == pytest.approx(optimum(works, speeds, 8, (1, 2, 4, 8)))
    assert greedy.tolist() == [3, 3, 2]
    assert cost(works, speeds, greedy) == pytest.approx(12.0326, abs=5e-5)
    assert cost(works, speeds, greedy) == pytest.approx(optimum(works, speeds, 8, range(1, 9)))


def test_golden_of_traps():
    """One more worker never helps beyond two; twice as many always do."""
    assert by_one((5,), (trap,), 16).tolist() == [2]
    assert by_doubling((5,), (trap,), 16).tolist() == [16]
    works = (5, 4, 3, 2, 1, 1)
    assert by_one(works, (trap,) * 6, 64).tolist() == [2] * 6
    assert by_doubling(works, (trap,) * 6, 64).tolist() == [16, 16, 8, 8, 8, 8]


def test_more_jobs_than_gpus():
    assert by_doubling((1,) * 5, (lambda w: w,) * 5, 3).tolist() == [1, 1, 1, 0, 0]


def test_a_speed_of_nothing_is_no_reason_to_grow():
    assert double([(1, 2, 4)], [(5.0, np.inf, 1.0)], [1.0], 4).tolist() == [1]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.2, 1.0)), max_size=12), st.integers(1, 40))
def test_invariants(jobs, gpus):
    works, speeds = [q for q, _ in jobs], [lambda w, a=a: w**a for _, a in jobs]
    sizes = by_doubling(works, speeds, gpus)
    assert sizes.sum() <= gpus
    assert all(w == 0 or w & (w - 1) == 0 for w in sizes.tolist())
    if len(jobs) <= gpus:
        assert (sizes >= 1).all()
    left = gpus - int(sizes.sum())
    for q, f, w in zip(works, speeds, sizes.tolist(), strict=True):
        assert w == 0 or w > left or 2 * w > gpus or q / f(w) <= q / f(2 * w)


def test_near_the_optimum(capsys):
    """There is no proven bound; on concave curves the power-of-two optimum is nearly reached."""
    rng, ratios = np.random.default_rng(3), []
    for _ in range(150):
        jobs, gpus = int(rng.integers(1, 8)), int(rng.integers(8, 33))
        works, powers = rng.uniform(1, 20, jobs).tolist(), rng.uniform(0.3, 1.0, jobs).tolist()
        speeds = [lambda w, a=a: w**a for a in powers]
        options = [w for w in (1, 2, 4, 8, 16, 32) if w <= gpus]
        ratios.append(
            cost(works, speeds, by_doubling(works, speeds, gpus)) / optimum(works, speeds, gpus, options)
        )
    with capsys.disabled():
        print(
            f" doubling / power-of-two optimum: mean {np.mean(ratios):.4f}, worst {max(ratios):.3f}", end=""
        )
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < 1.02


def test_the_oracle_is_exhaustive_search():
    works, speeds = (4, 2, 7), (lambda w: w**0.5, trap, lambda w: w)
    every = min(cost(works, speeds, s) for s in product((1, 2, 4), repeat=3) if sum(s) <= 8)
    assert optimum(works, speeds, 8, (1, 2, 4)) == pytest.approx(every)


@pytest.mark.parametrize(
    ("least", "most", "sizes"),
    [(1, 8, (1, 2, 4, 8)), (1, 12, (1, 2, 4, 8)), (3, 12, (3, 4, 8)), (6, 6, (6,)), (8, 31, (8, 16))],
)
def test_sizes_that_an_all_reduce_likes(least, most, sizes):
    assert liked(least, most) == sizes


class TestResizing:
    def run(self, policy, samples=1e6, restart_s=None, at=100.0, profile=None):
        """One job alone, then a second; return the instructions of the second decision."""
        profile = profile or ring_profile(restart_s=10.0)
        yard = Yard(uniform_cluster(1, 8), parse_policy(policy).decide, Rules(restart_s=restart_s))
        yard.handle(JobSubmitted(0.0, Job("a", 0.0, 8, samples=samples, profile=profile, min_gpus=1)))
        (start,) = yard.handle(DecisionDue(0.0))
        assert start.allocation.gpus == 8
        yard.handle(JobSubmitted(at, Job("b", at, 1, samples=samples, profile=profile)))
        return yard, yard.handle(DecisionDue(at))

    def test_room_is_made_for_a_newcomer_and_the_learning_rate_follows(self):
        yard, told = self.run("fifo+doubling")
        assert told == [Stop("a")]
        again, newcomer = sorted(yard.handle(JobStopped(100.0, "a")), key=lambda i: i.job_id)
        assert (again.allocation.gpus, again.lr_factor) == (4, 0.5)
        assert (newcomer.allocation.gpus, newcomer.lr_factor) == (1, 1.0)

    def test_the_learning_rate_stays_where_the_batch_does(self):
        yard, _ = self.run("fifo+doubling", profile=ring_profile("strong"))
        again = next(i for i in yard.handle(JobStopped(100.0, "a")) if i.job_id == "a")
        assert again.lr_factor == 1.0

    @pytest.mark.parametrize(("hysteresis", "grows"), [("true", False), ("false", True)])
    def test_growing_must_pay(self, hysteresis, grows):
        """Half a minute is left at 4 GPUs: eight would save 10 s of it, and a restart costs a minute."""
        profile = ring_profile(restart_s=60.0)
        policy = parse_policy(f"fifo+doubling(hysteresis={hysteresis})")
        yard = Yard(uniform_cluster(1, 8), policy.decide)
        left = 30.0 * 1e6 / (60 * RING[4])
        yard.handle(
            JobSubmitted(0.0, Job("a", 0.0, 4, samples=left, profile=profile, min_gpus=1, max_gpus=8))
        )
        yard.handle(JobSubmitted(0.0, Job("rigid", 0.0, 4, samples=left, profile=profile)))
        sizes = {i.job_id: i.allocation.gpus for i in yard.handle(DecisionDue(0.0)) if isinstance(i, Start)}
        assert sizes == {"a": 4, "rigid": 4}
        from trainyard.core.events import JobFinished

        yard.handle(JobFinished(1.0, "rigid"))
        assert bool(yard.handle(DecisionDue(1.0))) is grows

    def test_shrinking_for_nobody_is_not_done(self):
        held, target = np.array([8, 2]), np.array([4, 2])
        moves = held != target
        assert kept(moves, *parts(held, target, 16), np.array([50.0, 0.0])).tolist() == [True, False]
        crowd = np.array([8, 2, 0]), np.array([4, 2, 4])
        costs = np.array([50.0, 0.0, 0.0])
        moves = np.array([True, False, False])
        assert not kept(moves, *parts(*crowd, 10), costs).any()

    def test_a_swap_that_loses_more_than_it_wins_is_not_done(self):
        held, target = np.array([4, 4]), np.array([2, 8])
        shares = parts(held, target, 10)
        assert kept(held != target, *shares, np.array([100.0, -40.0])).tolist() == [True, True]
        assert not kept(held != target, *shares, np.array([30.0, -40.0])).any()


class TestExplore:
    def test_a_new_job_tries_one_two_four_and_eight(self):
        job = Job("a", 0.0, 1, samples=1e6, profile=ring_profile(restart_s=10.0), min_gpus=1, max_gpus=8)
        result = checked(uniform_cluster(1, 8), [job], "fifo+doubling(mode=explore,explore_s=150)")
        starts = [c for c in result.story_of("a") if c.cause in ("started", "resumed")]
        assert [c.allocation.gpus for c in starts] == [1, 2, 4, 8]
        gaps = np.diff([c.time_s for c in starts])
        assert gaps == pytest.approx([150.0, 160.0, 160.0])  # the first needs no restart
        assert result.summary()["restarts"] == 3

    def test_what_is_learnt_is_used(self):
        """A job that does not get faster goes back to one GPU."""
        rows = tuple((float(w), 0.0, 100.0) for w in (1, 2, 4, 8))
        flat = Profile(batch=8, tables=Tables(workers_servers=rows), restart_s=5.0)
        steep = ring_profile(restart_s=5.0)
        jobs = [
            Job("flat", 0.0, 1, samples=3e6, profile=flat, min_gpus=1, max_gpus=8),
            Job("steep", 0.0, 1, samples=1e6, profile=steep, min_gpus=1, max_gpus=8),
        ]
        result = checked(uniform_cluster(1, 9), jobs, "fifo+doubling(mode=explore)")
        runs = {
            name: [c.allocation.gpus for c in result.story_of(name) if c.allocation is not None][-1]
            for name in ("flat", "steep")
        }
        assert runs == {"flat": 1, "steep": 8}

    def test_bad_parameters(self):
        from trainyard.errors import InputError

        with pytest.raises(InputError, match="explore_s=-1 is too short"):
            parse_policy("doubling(mode=explore,explore_s=-1)")


def test_alone_with_the_largest_size_from_the_start():
    """Restart 0 and one job: exactly the time with the most GPUs."""
    job = Job("a", 5.0, 1, samples=1e6, profile=ring_profile(), min_gpus=1, max_gpus=8)
    result = checked(uniform_cluster(1, 8), [job], "fifo+doubling")
    assert result.summary()["avg_jct_s"] == pytest.approx(84 * 60)
