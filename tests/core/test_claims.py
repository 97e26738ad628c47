"""What jobs say of their progress: the total is told once, and nobody believes a jump."""

from __future__ import annotations

import pytest

from real_cases import Real, on, real
from trainyard.core.events import CheckpointWritten, ProgressReported


def running(**more):
    """A job of unknown speed that does 10 samples a second, as far as it has said."""
    r = Real(real(duration_s=None, **more))
    r.decide(0.0, a=on(n0=4))
    r.tell(ProgressReported(10.0, "a", 1.0))  # a slow beginning
    r.tell(ProgressReported(20.0, "a", 101.0))
    return r


def test_a_jump_is_ignored_and_said():
    r = running()
    why = r.why(ProgressReported(30.0, "a", 1000.0))
    assert why == (
        "job a says that it did 899 samples in 10 s; it was never faster than 10 a second, so that is ignored"
    )
    assert r.tell(ProgressReported(30.0, "a", 400.0)) == []  # three times as fast may be


def test_a_jump_by_a_checkpoint_is_ignored_as_well():
    r = running()
    assert "so that is ignored" in r.why(CheckpointWritten(30.0, "a", 1000.0))


def test_however_short_the_time_is_it_counts_as_a_second():
    r = running()
    assert "so that is ignored" in r.why(ProgressReported(20.1, "a", 140.0))
    assert r.tell(ProgressReported(20.1, "a", 120.0)) == []


def test_who_really_is_faster_is_believed_once_the_average_is():
    r = running()
    assert r.why(ProgressReported(21.0, "a", 201.0))
    assert r.tell(ProgressReported(30.0, "a", 301.0)) == []


def test_a_slow_beginning_alone_tells_no_speed():
    r = Real(real(duration_s=None))
    r.decide(0.0, a=on(n0=4))
    r.tell(ProgressReported(60.0, "a", 1.0))
    assert r.tell(ProgressReported(61.0, "a", 5000.0)) == []


def test_with_other_gpus_nothing_is_known_of_its_speed():
    r = running()
    r.decide(30.0, a=None)
    r.stopped(31.0, "a")
    r.decide(32.0, a=on(n0=4, n1=4)) if r.record().job.elastic else r.decide(32.0, a=on(n1=4))
    assert r.tell(ProgressReported(40.0, "a", 5000.0)) == []


def test_too_high_a_speed_is_not_believed_but_the_rest_is():
    r = running()
    r.tell(ProgressReported(30.0, "a", 201.0, samples_per_s=1e6))
    assert r.record().rate == pytest.approx(10.0)
    r.tell(ProgressReported(40.0, "a", 301.0, samples_per_s=12.0))
    assert r.record().rate == 12.0


def test_a_total_is_told_once():
    r = running()
    r.tell(ProgressReported(30.0, "a", 201.0, samples_total=1000.0))
    assert r.record().total == 1000.0
    r.tell(ProgressReported(40.0, "a", 301.0, samples_total=302.0))
    assert r.record().total == 1000.0


def test_a_total_that_was_told_at_submit_stays():
    r = Real(real(duration_s=None, samples=500.0))
    r.decide(0.0, a=on(n0=4))
    r.tell(ProgressReported(10.0, "a", 10.0, samples_total=11.0))
    assert r.record().total == 500.0
