"""Columns that are brought up to date from what changed say what the records say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.core import yard as core
from trainyard.core.events import DecisionDue, JobSubmitted, NodeFailed
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.state import journal
from trainyard.state.jobs import Column
from yard_cases import SLOW, STALLS, STEPS, Driven


def assert_up_to_date(table):
    """Against columns made anew."""
    there, anew = (each.data[:, : len(table)] for each in (table, table.fork()))
    names = [name for name, number in vars(Column).items() if name.isupper() and name != "COUNT"]
    wrong = {n for n in names if not np.array_equal(there[getattr(Column, n)], anew[getattr(Column, n)])}
    assert wrong == set()


class Compared(Driven):
    """Columns are looked at in decisions, and now and then."""

    def decide(self, snapshot):
        assert_up_to_date(snapshot.table)
        return super().decide(snapshot)

    def look(self, _):
        assert_up_to_date(self.yard.table)


@pytest.mark.parametrize("policy", ["fifo(fill=easy)", "srtf", "drf", "srtf+tune"])
@settings(max_examples=60, deadline=None)
@given(
    STEPS, st.sampled_from([uniform_cluster(3, 4), SLOW]), st.sampled_from(STALLS), st.sampled_from([4, 8192])
)
def test_columns_follow_whatever_happens(policy, steps, cluster, stalls, kept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "KEPT", kept)
        patch.setattr(core, "KEPT", kept)
        driven = Compared(policy, cluster, stalls)
        for kind, number in [*steps, ("look", 0), ("swift", 0), ("look", 0)]:
            driven.step(kind, number)


def test_a_failure_under_a_job_that_stops_is_noted():
    """It was told to stop before it got going: from now on it makes no progress since the failure."""
    plans = iter([{"a": Allocation((Share("GPU-0", 4, 0, 12.0, 250.0),))}, {"a": None}])
    yard = Yard(uniform_cluster(1, 4), lambda snapshot: Plan(next(plans)), Rules(start_s=30.0))
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 4, 100.0)))
    yard.handle(DecisionDue(0.0))
    yard.handle(DecisionDue(10.0))
    assert yard.table.column(Column.SINCE).tolist() == [30.0]
    yard.handle(NodeFailed(15.0, "GPU-0"))
    assert_up_to_date(yard.table)


def test_columns_that_were_not_asked_for_catch_up_at_once():
    table = (yard := Yard(uniform_cluster(1, 4), lambda snapshot: Plan({}))).table
    for i in range(100):
        yard.handle(JobSubmitted(0.0, Job(f"j{i}", 0.0, 1 + i % 4, 100.0)))
    assert table._read == 0
    assert table.column(Column.GPUS).tolist() == [1.0 + i % 4 for i in range(100)]
    assert table._read == table.changed.version
