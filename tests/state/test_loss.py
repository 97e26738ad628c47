"""What it costs to stop a job: by the model's checkpoints, or by those that the job reported."""

from __future__ import annotations

import pytest

from policy_cases import nodes_of, yard_of
from trainyard.core.events import CheckpointWritten, ProgressReported
from trainyard.model.job import Job
from trainyard.state.loss import checkpoint_age_s, lost_gpu_s


def running(**more):
    job = Job("a", 0.0, 2, **{"duration_s": 1000.0, "checkpoint_s": 100.0, **more})
    return yard_of(nodes_of(4), [job, Job("b", 0.0, 1, 9.0)], {"a": {"n0": 2}}, restart_s=10.0)


@pytest.mark.parametrize(("now_s", "age_s"), [(0.0, 0.0), (30.0, 30.0), (100.0, 0.0), (250.0, 50.0)])
def test_the_model_writes_a_checkpoint_now_and_then(now_s, age_s):
    yard = running()
    assert checkpoint_age_s(yard.find("a"), now_s) == age_s
    assert lost_gpu_s(yard.snapshot(now_s), yard.find("a")) == 2 * (age_s + 10.0)


def test_who_saves_all_the_time_loses_nothing():
    assert checkpoint_age_s(running(checkpoint_s=0.0).find("a"), 77.0) == 0.0


def test_who_does_not_run_has_nothing_to_lose():
    yard = running()
    assert lost_gpu_s(yard.snapshot(50.0), yard.find("b")) == 0.0


@pytest.mark.parametrize("known", [True, False])
def test_a_job_that_reports_loses_what_it_did_not_save(known):
    """It does two samples (GPU-seconds) a second: 240 are done at 120 s, of which 200 are saved."""
    yard = running(duration_s=1000.0 if known else None)
    yard.handle(CheckpointWritten(100.0, "a", 200.0))
    yard.handle(ProgressReported(120.0, "a", 240.0, 2.0))
    record = yard.find("a")
    assert checkpoint_age_s(record, 120.0) == pytest.approx(20.0)
    assert checkpoint_age_s(record, 150.0) == pytest.approx(50.0)  # the model's would be 50 % 100, too
    assert checkpoint_age_s(record, 350.0) == pytest.approx(250.0)
    yard.handle(CheckpointWritten(360.0, "a", 720.0))
    assert checkpoint_age_s(yard.find("a"), 360.0) == pytest.approx(0.0)
