"""Who may not start where because of reservations."""

from __future__ import annotations

from math import inf

import pytest

from trainyard.model.job import Job
from trainyard.model.terms import Terms
from trainyard.state.bars import Bars
from trainyard.state.record import Record

BARS = Bars([(100.0, 200.0, "t", 0b01), (150.0, inf, "", 0b10)], ())


def record(**more):
    return Record(Job("a", 0.0, 4, 100.0, **more), 1, -1, (400.0, 4.0, 100.0), 0.0, 0.0)


@pytest.mark.parametrize(
    ("now", "tenant", "mask"),
    [
        (99.9, "", 0),
        (100.0, "", 0b01),
        (100.0, "t", 0),
        (150.0, "t", 0b10),  # nobody's
        (150.0, "u", 0b11),
        (199.9, "u", 0b11),
        (200.0, "u", 0b10),
    ],
)
def test_a_job_that_can_be_stopped_is_barred_while_it_lasts(now, tenant, mask):
    assert BARS.of(record(tenant=tenant), now) == mask


@pytest.mark.parametrize(
    ("terms", "now", "mask"),
    [
        (None, 0.0, 0b01),  # of a trace: its 100 s are known
        (None, 49.0, 0b01),
        (None, 50.0, 0b11),
        (Terms(), 0.0, 0b11),
        (Terms(time_limit_s=99.0), 0.0, 0),
        (Terms(time_limit_s=99.0), 1.0, 0b01),
        (Terms(time_limit_s=150.0), 0.0, 0b11),
    ],
)
def test_one_that_cannot_is_barred_before_if_it_may_not_be_over(terms, now, mask):
    assert BARS.of(record(terms=terms, preemptible=False), now) == mask


def test_what_it_has_run_already_counts_against_its_limit():
    one = record(terms=Terms(time_limit_s=120.0), preemptible=False)
    assert BARS.of(one, 0.0) == 0b01
    one.executed = 30.0
    assert BARS.of(one, 0.0) == 0


@pytest.mark.parametrize(("now", "mask"), [(99.9, 0), (100.0, 0b100), (149.9, 0b100), (150.0, 0b110)])
def test_nodes_that_nobody_may_use(now, mask):
    bars = Bars([*BARS.windows, (100.0, inf, "", 0b100)], ())
    assert bars.nobodys(now) == mask
