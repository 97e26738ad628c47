"""A job's life in sentences, as `story` tells it."""

from __future__ import annotations

import pytest

from live_cases import controller_of, hand_in
from trainyard.core.events import (
    CheckpointWritten,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobStopped,
    NodeFailed,
    ProgressReported,
)
from trainyard.live.narration import places
from trainyard.live.store import reading
from trainyard.model.allocation import Allocation, Share
from trainyard.model.terms import Terms


class Life:
    """One job of a controller, told one event after the other."""

    def __init__(self, controller):
        self.controller = controller
        hand_in(controller, "a", terms=Terms(retries=1), duration_s=None, samples=1000.0)

    def __call__(self, *events):
        """Tell of events; a decision follows each."""
        for event in (None, *events):
            if event is not None:
                self.controller.clock.now_s = event.time_s
                self.controller.tell(event, "ann")
            self.controller.decide()
            self.controller.commit()
        with self.controller.store.engine.connect() as connection:
            return [row["text"] for row in reading.story_of(connection, "a")]


@pytest.fixture
def life(tmp_path):
    with controller_of(tmp_path / "store") as (controller, _):
        yield Life(controller)


def test_a_whole_life(life):
    assert life(JobFinished(30.0, "a", attempt=1)) == [
        "submitted by ann",
        "waiting: accepted",
        "attempt 1 started, 1 GPU on n0",
        "done: all work done",
    ]


def test_a_hold_and_what_was_saved(life):
    told = life(
        ProgressReported(10.0, "a", 300.0, attempt=1),
        JobHeld(20.0, "a"),
        JobStopped(25.0, "a", 1, code="saved", exit_code=75),
        JobReleased(30.0, "a"),
    )
    assert told[3:] == [
        "stopping: held",
        "saved, exit 75 (not counted); held until it is released",
        "waiting: released",
        "attempt 2 started, 1 GPU on n0, going on from 600 samples",
    ]


def test_a_failure_says_whether_it_counted_and_how_much_is_to_be_done_again(life):
    told = life(
        CheckpointWritten(10.0, "a", 200.0, 1),
        ProgressReported(20.0, "a", 500.0, attempt=1),
        JobFailed(20.0, "a", "killed", "rank 0 on n0 was killed by SIGKILL from outside", None, 1),
    )
    assert told[3] == (
        "rank 0 on n0 was killed by SIGKILL from outside (killed, not counted); "
        "300 samples have to be done again"
    )
    assert told[4].endswith("going on from 200 samples")
    assert life(JobFailed(40.0, "a", "exit", "rank 0 exited with 2", 2, 2))[5].startswith(
        "rank 0 exited with 2 (exit, counted)"
    )


def test_a_cancelled_job_says_who_did_it(life):
    assert life(
        JobCancelled(5.0, "a", True, "cancelled by ann"),
        JobGone(6.0, "a", 1),
    )[3:] == ["killing: cancelled by ann", "cancelled: cancelled by ann"]


def test_a_lost_node_is_named(life):
    assert "node n0 failed" in life(NodeFailed(5.0, "n0"))[3]


def test_places():
    assert places(Allocation((Share("n0", 1, 0, 1.0, 1.0),))) == "1 GPU on n0"
    both = Allocation((Share("n0", 2, 1, 1.0, 1.0), Share("n1", 0, 1, 1.0, 1.0)))
    assert places(both) == "2 GPUs and 2 servers on n0, n1"
