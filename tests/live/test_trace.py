"""What you simulate is what you run: a trace through the real controller gives the simulator's schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trace_cases import HALVES, World, differences, mixed_jobs, simulated
from trainyard.errors import TrainyardError
from trainyard.live.deciding import Decider
from trainyard.live.recovery import check_log
from trainyard.live.store import reading
from trainyard.live.store.opening import connect
from trainyard.model.job import Job
from trainyard.model.rules import Rules

JOBS = mixed_jobs(40, seed=3)
COSTLY = Rules(restart_s=30.0, start_s=5.0)
CASES = [
    ("fifo", Rules()),
    ("easy", COSTLY),
    ("srtf", COSTLY),
    ("las", Rules()),
    ("tiresias", Rules(restart_s=20.0, round_s=60.0)),
    ("srtf+doubling", COSTLY),
    ("srtf+tune", Rules()),
    ("srtf+steepest+tune", Rules()),
    ("srtf+doubling+tune", Rules(round_s=120.0)),
    ("srtf+tune", Rules(unknown_durations=True, restart_s=30.0)),
    ("las+doubling", Rules(unknown_durations=True, round_s=60.0)),
]


def world_of(tmp_path, policy, rules, jobs=JOBS):
    return World(f"sqlite:///{tmp_path}/store", HALVES, jobs, policy, rules)


def replayed(world):
    """Replay the log, decisions included; return its length."""
    engine = connect(world.url)
    try:
        with engine.connect() as connection:
            assert reading.open_intents(connection) == []
            return check_log(connection, Decider())
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    ("policy", "rules"), CASES, ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_a_trace_through_the_controller_gives_the_schedule_of_the_simulator(tmp_path, policy, rules):
    # What a job did after its last checkpoint before it failed is no part of its length, if nobody told that.
    jobs = [replace(job, status="") for job in JOBS] if rules.unknown_durations else JOBS
    world = world_of(tmp_path, policy, rules, jobs)
    world.live()
    schedule = world.schedule()
    assert differences(schedule, simulated(world)) == []
    ends = {"done"} if rules.unknown_durations else {"done", "failed", "cancelled"}
    assert {life.state for life in schedule.values()} == ends
    assert replayed(world) > 4 * len(JOBS)


@pytest.mark.parametrize("policy", ["las", "srtf+doubling+tune"])
def test_a_controller_that_ends_in_the_middle_changes_nothing(tmp_path, policy):
    """Each life ends between two moments; the next knows only the store and what the backend shows."""
    world = world_of(tmp_path, policy, COSTLY)
    for until_s in (700.0, 2500.0, 2500.0, 6000.0):
        world.live(until_s)
    world.live()
    assert differences(world.schedule(), simulated(world)) == []
    assert replayed(world) > 4 * len(JOBS)


@pytest.mark.parametrize("settings", [{"snapshot_events": 7}, {"snapshot_events": 10_000}])
def test_it_does_not_matter_how_often_the_core_was_written_down(tmp_path, settings):
    world = world_of(tmp_path, "srtf+tune", COSTLY)
    world.settings = type(world.settings)(**settings)
    for until_s in (1000.0, 2000.0, 4000.0, 8000.0):
        world.live(until_s)
    world.live()
    assert differences(world.schedule(), simulated(world)) == []


def test_a_difference_would_be_seen(tmp_path):
    """Starts that cost more than the core believes change the schedule, and the comparison says so."""
    world = world_of(tmp_path, "las", Rules())
    world.backend._rules = Rules(start_s=10.0)
    world.live()
    told = differences(world.schedule(), simulated(world))
    assert told
    assert "simulated" in told[0]


def test_a_job_that_can_never_run_is_named(tmp_path):
    world = world_of(
        tmp_path, "fifo", Rules(), [Job("big", 0.0, 5, 10.0, gpu_type="V100"), Job("huge", 1.0, 99, 5.0)]
    )
    with pytest.raises(TrainyardError, match="job huge waits and nothing will ever happen"):
        world.live()
