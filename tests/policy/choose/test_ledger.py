"""The books of an admission: what is left by type, by limit and by guarantee; sizes that are tried."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from policy_cases import snapshot_of, two_types
from trainyard.model.job import Job
from trainyard.model.tenant import Tenant
from trainyard.policy.choose.ledger import Candidate, Ledger, cut
from trainyard.policy.choose.quota import Quota
from trainyard.policy.choose.sizes import sizes_to_try

TENANTS = {"red": Tenant("red", 3, 4), "blue": Tenant("blue"), "green": Tenant("green", 2)}
RED, BLUE = Job("r", 0.0, 2, 9.0, tenant="red"), Job("b", 0.0, 2, 9.0, tenant="blue")


def books(*jobs, by_type, tenants=TENANTS):
    """A ledger of 4 K80s and 2 V100s, and candidates that have nothing yet."""
    snapshot = snapshot_of(replace(two_types(v100=2, k80=4), tenants=tenants), jobs)
    ledger = Ledger(snapshot, by_type)
    nothing = [0] * len(ledger.left)
    return ledger, [Candidate(r, r.job.least_gpus, has=nothing) for r in snapshot.table.records]


def test_gpus_are_counted_by_type_or_all_as_one():
    for by_type, left in ((True, [4, 2]), (False, [6])):
        ledger, _ = books(RED, by_type=by_type)
        assert (ledger.left, ledger.of_type) == (left, [4, 2])


def test_giving_and_taking_back_is_counted_everywhere():
    fast = Job("f", 0.0, 2, 9.0, gpu_type="V100", tenant="red")
    ledger, (one, any_) = books(fast, BLUE, by_type=True)
    ledger.give(one, [0, 2])
    assert (ledger.left, ledger.of_type, one.gpus, ledger.quota.left(fast)) == ([4, 0], [4, 0], 2, 2)
    ledger.give(any_, [3, 0])
    assert (ledger.left, ledger.of_type) == ([1, 0], [4, 0])  # who accepts any type leaves all of each
    ledger.give(one, [0, 1])
    assert (ledger.left, ledger.of_type, one.gpus, ledger.quota.left(fast)) == ([1, 1], [4, 1], 1, 3)


@pytest.mark.parametrize(
    ("more", "wanted", "most"),
    [
        ({}, [4, 2], [4, 2]),
        ({}, [9, 9], [4, 2]),
        ({"tenant": "red"}, [4, 2], [4, 0]),
        ({"tenant": "red"}, [1, 2], [1, 2]),
        ({"sizes": (2, 3, 5)}, [4, 2], [4, 1]),
        ({"sizes": (2, 3)}, [2, 2], [2, 1]),
        ({"min_gpus": 2}, [1, 0], []),
        ({"min_gpus": 2}, [1, 1], [1, 1]),
        ({"max_gpus": 3}, [4, 2], [3, 0]),
    ],
    ids=str,
)
def test_as_much_as_there_is_in_a_size_that_the_job_may_have(more, wanted, most):
    job = Job("a", 0.0, 3 if "sizes" in more else 2, 9.0, **{"min_gpus": 1, "max_gpus": 8, **more})
    ledger, (candidate,) = books(job, by_type=True)
    assert ledger.most(candidate, wanted) == most


def test_what_a_job_has_counts_as_there_and_is_never_cut():
    job = Job("a", 0.0, 2, 9.0, min_gpus=1, max_gpus=8, tenant="red")
    ledger, (candidate,) = books(job, by_type=True)
    ledger.give(candidate, [3, 0])
    assert ledger.most(candidate, [4, 1]) == [4, 0]
    assert ledger.most(candidate, [2, 0]) == []
    assert ledger.most(candidate, [3, 0]) == [3, 0]
    assert ledger.allowance(candidate) == 4


def test_the_only_type_that_a_job_accepts_bounds_it_where_all_count_as_one():
    fast = Job("f", 0.0, 2, 9.0, gpu_type="V100")
    for by_type, allowed in ((False, 2), (True, inf)):
        ledger, (candidate,) = books(fast, by_type=by_type)
        assert ledger.allowance(candidate) == allowed
    slow = Job("k", 0.0, 2, 9.0, gpu_type="K80")
    ledger, (candidate,) = books(slow, by_type=False)
    assert ledger.allowance(candidate) == 4
    ledger.give(candidate, [3])
    assert (ledger.of_type, ledger.allowance(candidate)) == ([1, 2], 4)


@pytest.mark.parametrize(
    ("gpus", "size", "kept"),
    [
        ([1, 3, 2], 4, [0, 3, 1]),
        ([2, 2], 3, [2, 1]),
        ([2, 2], 4, [2, 2]),
        ([1, 3], 2, [0, 2]),
        ([5], 0, [0]),
    ],
)
def test_types_with_most_gpus_are_kept(gpus, size, kept):
    assert cut(gpus, size) == kept


def test_a_limit_is_used_up_and_given_back():
    quota = Quota(TENANTS)
    assert (quota.left(RED), quota.left(BLUE)) == (4, inf)
    quota.take(RED, 3)
    quota.take(BLUE, 99)
    assert (quota.left(RED), quota.left(BLUE)) == (1, inf)
    quota.take(RED, -2)
    assert quota.left(RED) == 3


def test_a_guarantee_is_used_up_by_whoever_has_gpus():
    quota = Quota(TENANTS)
    assert not quota.entitled(RED, 4)
    assert quota.entitled(RED, 1)
    assert quota.entitled(RED, 2)
    assert not quota.entitled(RED, 1)
    assert not quota.entitled(BLUE, 1)
    green = replace(RED, tenant="green")
    quota.spend(green, 1)
    assert not quota.entitled(green, 2)
    assert quota.entitled(green, 1)
    other = Quota(TENANTS)
    other.spend(green, 9)  # more than it is promised
    assert not other.entitled(green, 1)
    other.spend(BLUE, 1)
    assert not other.entitled(BLUE, 1)


@pytest.mark.parametrize(
    ("gpus", "smaller", "tried"),
    [
        (8, [4, 2, 1], [8, 4]),  # below 3 it cannot run
        (8, [7, 6, 5], [8, 6, 4]),  # of its own sizes, each once
        (6, [6, 5, 5], [6, 4]),
        (3, [2, 0], [3]),
        (0, [3], []),
    ],
)
def test_sizes_that_the_job_allows_each_smaller_than_the_one_before(gpus, smaller, tried):
    job = Job("a", 0.0, 4, 9.0, min_gpus=3, max_gpus=8, sizes=(3, 4, 6, 8))
    assert list(sizes_to_try(job, gpus, lambda _, __: iter(smaller))) == tried
