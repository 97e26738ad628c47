"""Past jobs as a measure for those to come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.estimate import heavy_tail
from trainyard.model.job import Job
from trainyard.state import history as module
from trainyard.state.history import History, restored


def job(tenant="t", gpus=1, model=""):
    return Job("j", 0.0, gpus, tenant=tenant, model=model)


def history_of(*past):
    history = History()
    for like, *totals in past:
        for total_s in totals:
            history.add(like, total_s)
    return history


def test_an_empty_one_guesses():
    assert History().estimate(job()).source == "guess"
    assert History().estimate(job(), 10_000.0).mean == 20_000.0


def test_the_closest_jobs_are_asked_first():
    history = history_of(
        (job(model="m", gpus=4), 100.0, 200.0, 300.0),
        (job(model="m", gpus=1), 1000.0, 2000.0, 3000.0),
        (job("other"), 9.0),
    )
    assert history.estimate(job(model="m", gpus=4)).mean == 200.0
    assert history.estimate(job(model="m", gpus=1)).mean == 2000.0
    assert history.estimate(job(model="m", gpus=2)).mean == 1100.0  # of its tenant and model
    assert history.estimate(job(model="new")).mean == pytest.approx((6600 + 9) / 7)  # of the site


def test_what_it_has_done_counts():
    """Means of those that are longer; with fewer than three, jobs that are less alike are asked."""
    history = history_of((job(gpus=2), 10.0, 20.0, 30.0, 40.0), (job(gpus=1), 100.0, 200.0, 300.0))
    assert history.estimate(job(gpus=2), 10.0).mean == 30.0  # of 20, 30, 40
    assert history.estimate(job(gpus=2), 9.0).mean == 25.0
    assert history.estimate(job(gpus=2), 20.0).mean == pytest.approx((30 + 40 + 600) / 5)
    assert history.estimate(job(gpus=2), 250.0) == (300.0, 300.0, 300.0, "history")  # the only longer one
    assert history.estimate(job(gpus=2), 300.0) == heavy_tail(300.0)


def test_who_did_nothing_tells_nothing():
    history = history_of((job(), 0.0))
    assert history.record() == []


def test_only_the_last_totals_count(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 3)
    history = history_of((job(), 1000.0, 1.0, 2.0, 3.0))
    assert history.estimate(job()).mean == 2.0


def test_the_key_added_to_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEYS", 4)
    history = history_of((job("a"), 1.0, 1.0, 1.0), (job("b"), 5.0, 5.0, 5.0), (job("a"), 1.0))
    history.add(job("c"), 9.0)
    assert history.estimate(job("a")).mean == 1.0
    assert history.estimate(job("b")).mean == pytest.approx((4 + 15 + 9) / 8)
    assert len(history.record()) == 1 + 4


PAST = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b"]), st.integers(1, 2), st.sampled_from(["", "m"]), st.floats(0.1, 1e6)
    ),
    max_size=40,
)


@given(PAST, st.floats(0.0, 2e6))
def test_a_copy_and_a_file_know_the_same(past, attained_s):
    history = history_of(*((job(tenant, gpus, model), total) for tenant, gpus, model, total in past))
    for twin in (history.copy(), restored(json.loads(json.dumps(history.record())))):
        assert twin.record() == history.record()
        for like in (job(), job("a", 2, "m"), job("b", 1, "")):
            assert twin.estimate(like, attained_s) == history.estimate(like, attained_s)
            assert history.estimate(like, attained_s).mean > attained_s
        twin.add(job(), 5.0)
        assert twin.record() != history.record()
