"""Accounts of usage: what is forgotten takes no memory, and forgetting it changes nothing."""

from __future__ import annotations

import pytest

from trainyard.model.job import Job
from trainyard.state.usage import FEW, FORGOTTEN, WEEK_S, Usage, restored


def job(tenant="t", user="u"):
    return Job("a", 0.0, 1, 10.0, tenant=tenant, user=user)


def crowd(usage, users, now_s, gpu_s=100.0):
    for i in range(users):
        usage.change(job(f"t{now_s:g}-{i}"), now_s, 0, gpu_s)


def test_accounts_of_long_ago_are_dropped():
    usage = Usage()
    usage.change(job("keeps"), 0.0, 2)  # it holds GPUs all the time
    for year in range(20):
        crowd(usage, FEW, year * 52 * WEEK_S)
    assert len(usage.accounts) <= 4 * FEW
    assert usage.gpus(("keeps",)) == 2
    assert usage.gpu_s(("keeps",), 1e9) == pytest.approx(2 / usage.pace)


def test_nothing_that_counts_is_dropped():
    usage = Usage()
    for week in range(8):
        crowd(usage, FEW, week * WEEK_S)
    assert len(usage.accounts) == 2 * 8 * FEW
    assert usage.gpu_s(("t0-5",), 8 * WEEK_S) == pytest.approx(100.0 / 2**8)


def test_few_accounts_are_left_alone():
    usage = Usage()
    crowd(usage, 100, 0.0)
    crowd(usage, 100, 1e3 * WEEK_S)
    assert len(usage.accounts) == 400
    assert usage.gpu_s(("t0-5",), 1e3 * WEEK_S) < FORGOTTEN


def test_a_copy_and_a_record_drop_the_same():
    usage = Usage()
    crowd(usage, FEW // 2 - 1, 0.0)
    twins = [usage, usage.copy(), restored(usage.record())]
    for twin in twins:
        crowd(twin, 3, 60 * WEEK_S)
    assert len(usage.accounts) < 20
    assert twins[0].accounts == twins[1].accounts == twins[2].accounts
