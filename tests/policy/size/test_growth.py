"""The one grower against the same rules written down as they are said, with every step looked at anew."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from grower_cases import a_grower, profiles
from trainyard.core.events import JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.growth import all_sizes, best_first, grow, growers_of, in_turn, smallest
from trainyard.state.beliefs import Told

AMOUNTS = st.tuples(st.integers(0, 4), st.integers(0, 4))
ROOM = st.tuples(st.integers(0, 20), st.integers(0, 20))
# Of each job a ladder of steps: how good each is, and what it takes.
LADDERS = st.lists(st.lists(st.tuples(st.integers(-5, 5), AMOUNTS), max_size=5), max_size=5)


def fits(needs, room):
    return all(sum(need[r] for need in needs) <= room[r] for r in range(len(room)))


@given(st.lists(AMOUNTS, max_size=8), ROOM)
def test_the_first_ones_find_room_first(needs, room):
    served, left = in_turn(needs, room)
    everybody = range(len(needs))
    sets = chain.from_iterable(combinations(everybody, n) for n in range(len(needs) + 1))
    possible = [who for who in sets if fits([needs[i] for i in who], room)]
    # Of all sets that fit, the one that serves the first job if any does, then the second, and so on.
    assert tuple(served) == max(possible, key=lambda who: [i in who for i in everybody])
    assert left == tuple(room[r] - sum(needs[i][r] for i in served) for r in range(2))


def ladder_by_definition(ladders, room, skips):
    """All jobs are asked anew before every single step."""
    sizes = [0] * len(ladders)
    while True:
        found = []
        for i, ladder in enumerate(ladders):
            ahead = list(enumerate(ladder))[sizes[i] :]
            for k, (rank, takes) in ahead if skips else ahead[:1]:
                if fits([takes], room):
                    found.append((rank, i, k, takes))
        if not found:
            return dict(enumerate(sizes))
        _, i, k, takes = min(found)
        sizes[i], room = k + 1, tuple(a - b for a, b in zip(room, takes, strict=True))


@settings(max_examples=300, deadline=None)
@given(LADDERS, ROOM)
def test_steps_that_ignore_the_room_end_where_one_does_not_fit(ladders, room):
    def next_step(i, k, _):
        return (*ladders[i][k], k + 1) if k < len(ladders[i]) else None

    assert grow(dict.fromkeys(range(len(ladders)), 0), room, next_step) == ladder_by_definition(
        ladders, room, skips=False
    )


@settings(max_examples=300, deadline=None)
@given(LADDERS, ROOM)
def test_steps_that_know_the_room_are_found_anew_when_it_is_short(ladders, room):
    """A job may skip steps; it takes the best of all that are ahead of it and fit."""

    def next_step(i, size, room):
        ahead = [(*ladders[i][k], k + 1) for k in range(size, len(ladders[i]))]
        fitting = [step for step in ahead if fits([step[1]], room)]
        return min(fitting, key=lambda step: (step[0], step[2]), default=None)

    assert grow(dict.fromkeys(range(len(ladders)), 0), room, next_step, again=True) == ladder_by_definition(
        ladders, room, skips=True
    )


def test_the_sizes_that_were_given_stay_as_they_are():
    start = {0: 1, 2: 1}
    grown = grow(start, (3,), lambda i, size, _: (size, (1,), size + 1))
    assert grown == {0: 3, 2: 2}
    assert start == {0: 1, 2: 1}


@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=4), max_size=5))
def test_whoever_has_the_least_rank_goes_next(ranks):
    """Each has a list of ranks and leaves when it is used up."""
    left, said, expected = [list(own) for own in ranks], [], []
    waiting = {i: iter(own) for i, own in enumerate(ranks)}
    heads = {i: next(own) for i, own in waiting.items()}
    while heads:
        i = min(heads, key=lambda i: (heads[i], i))
        expected.append(i)
        if (rank := next(waiting[i], None)) is None:
            del heads[i]
        else:
            heads[i] = rank

    def take(i, step):
        assert step == (left[i][0],)
        said.append(i)
        left[i].pop(0)
        return (left[i][0],) if left[i] else None

    best_first([(i, (own[0],)) for i, own in enumerate(ranks)], take)
    assert said == expected


@given(st.lists(a_grower(), max_size=6))
def test_smallest_sizes_while_there_is_room(growers):
    sizes, room = smallest(growers)
    used = np.zeros(3)
    for i, grower in enumerate(growers):
        need = grower.least[0] * np.array(grower.worker) + grower.least[1] * np.array(grower.server)
        assert (i in sizes) == bool((used + need <= 1 + 1e-9).all())
        if i in sizes:
            assert sizes[i] == grower.least
            used += need
    np.testing.assert_allclose(used + room, 1.0, atol=1e-8)


def test_everybody_has_a_row():
    assert all_sizes({1: 4}, 0, 3).tolist() == [0, 4, 0]
    assert all_sizes({1: (4, 2)}, (0, 0), 2).tolist() == [[0, 0], [4, 2]]
    assert all_sizes({}, (0, 0), 0).shape == (0, 2)


def test_jobs_that_are_alike_share_their_speeds():
    yard = Yard(uniform_cluster(2), parse_policy("lookahead").decide)
    for i, profile in enumerate([*profiles().values(), *profiles().values()]):
        job = Job(str(i), 0.0, 2, samples=1e5, profile=profile, min_gpus=1, max_gpus=8, weight=1.0 + i)
        yard.handle(JobSubmitted(0.0, job))
    growers = growers_of(Told(yard.snapshot(0.0)), np.arange(6))
    for one, other in zip(growers[:3], growers[3:], strict=True):
        assert one.speeds is other.speeds
    assert [grower.least for grower in growers[:3]] == [(1, 0), (1, 0), (1, 1)]
    assert [grower.speeds.shape for grower in growers[:3]] == [(9, 1), (9, 1), (9, 9)]
    assert [grower.weight for grower in growers] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    # Two workers with 2 of 48 CPUs and 16 of 1000 GB each, three servers with 1 CPU and 8 GB each.
    assert growers[2].takes((2, 3)) == (2 / 16, 2 * (2 / 48) + 3 * (1 / 48), 2 * (16 / 1000) + 3 * (8 / 1000))
