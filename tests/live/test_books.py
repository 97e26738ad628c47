"""What is written down of an event: attempts, the story, jobs that are over, intents."""

import pytest
from sqlalchemy import text

from live_cases import controller_of, hand_in
from trainyard.core.events import (
    CheckpointWritten,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobStopped,
    JobSubmitted,
    ProgressReported,
)
from trainyard.live.backends.base import RunKey
from trainyard.live.controller import BrokenError
from trainyard.live.store import reading
from trainyard.live.views import Info
from trainyard.model.job import Job
from trainyard.model.terms import Terms


def tell(controller, event, after_s=1.0):
    controller.clock.now_s = max(controller.clock.now_s, event.time_s) + after_s
    answer = controller.tell(event)
    controller.commit()
    return answer


def decide(controller):
    controller.decide()
    controller.commit()


@pytest.fixture
def grown(tmp_path):
    """An elastic job that was stopped for more GPUs, and started with them by the same event."""
    with controller_of(tmp_path / "store.db", policy="srtf+doubling") as (controller, _):
        hand_in(controller, "a", min_gpus=1, max_gpus=4, terms=Terms())
        hand_in(controller, "b", gpus=2, duration_s=5.0, terms=Terms())
        decide(controller)
        tell(controller, JobFinished(1.0, "b", attempt=1))
        decide(controller)
        assert [(intent.kind, intent.job_id) for intent in controller.sent[-1:]] == [("stop", "a")]
        controller.forgettable.clear()
        tell(controller, JobStopped(2.0, "a", 1, code="saved", exit_code=75))
        assert controller.sent[-1][2:5] == ("start", "a", 2)
        yield controller


def test_an_end_and_the_next_start_in_one_event_are_of_two_attempts(grown):
    with grown.store.engine.connect() as connection:
        first, second = reading.attempts_of(connection, "a")
    assert (first["code"], first["exit_code"]) == ("saved", 75)
    assert first["ended_s"] is not None
    assert (second["code"], second["ended_s"], second["exit_code"]) == (None, None, None)


def test_only_the_run_that_ended_is_forgotten(grown):
    """Who forgets the new one sees it no more, and takes it for lost."""
    assert grown.forgettable == [RunKey("a", 1)]
    assert grown.observer.is_alive(RunKey("a", 2))
    assert not grown.observer.is_alive(RunKey("a", 1))


def story(controller, job_id):
    with controller.store.engine.connect() as connection:
        return [entry["text"] for entry in reading.story_of(connection, job_id)]


@pytest.fixture
def saved_ten(tmp_path):
    """A job that did 17 samples and saved ten."""
    with controller_of(tmp_path / "store.db") as (controller, _):
        hand_in(controller, "a", terms=Terms(retries=3))
        decide(controller)
        tell(controller, ProgressReported(5.0, "a", 17.0, attempt=1, samples_total=100.0))
        tell(controller, CheckpointWritten(5.0, "a", 10.0, attempt=1))
        yield controller


def test_the_story_says_how_much_has_to_be_done_again(saved_ten):
    failed = JobFailed(saved_ten.yard.now_s, "a", "exit", "it failed", 1, 1)
    tell(saved_ten, failed)
    assert story(saved_ten, "a")[-1] == "it failed (exit, counted); 7 samples have to be done again"


def test_the_story_says_so_at_a_kill_too(saved_ten):
    failed = JobFailed(saved_ten.yard.now_s, "a", "lost_shim", "nobody watched it", attempt=1, gone=False)
    tell(saved_ten, failed)
    assert story(saved_ten, "a")[-1].endswith("nobody watched it; 7 samples have to be done again")
    tell(saved_ten, JobGone(saved_ten.yard.now_s, "a", 1, "n0"))
    assert "done again" not in story(saved_ten, "a")[-1]


@pytest.mark.parametrize("held", [False, True])
def test_an_attempt_says_how_it_ended_whatever_becomes_of_its_job(saved_ten, held):
    if held:
        tell(saved_ten, JobHeld(saved_ten.yard.now_s, "a"))
    tell(saved_ten, JobFailed(saved_ten.yard.now_s, "a", "killed", "killed from outside", attempt=1))
    with saved_ten.store.engine.connect() as connection:
        (attempt,) = reading.attempts_of(connection, "a")
    assert (attempt["code"], attempt["text"]) == ("killed", "killed from outside")
    assert saved_ten.published.job("a")["state"] == ("held" if held else "waiting")


def test_an_attempt_of_a_cancelled_job_says_why(saved_ten):
    tell(saved_ten, JobCancelled(saved_ten.yard.now_s, "a", text="cancelled by ann"))
    tell(saved_ten, JobStopped(saved_ten.yard.now_s, "a", 1, code="saved", exit_code=75))
    with saved_ten.store.engine.connect() as connection:
        (attempt,) = reading.attempts_of(connection, "a")
    assert (attempt["code"], attempt["exit_code"]) == ("user", 75)


def test_less_than_a_sample_is_not_worth_a_word(saved_ten):
    tell(saved_ten, CheckpointWritten(saved_ten.yard.now_s, "a", 16.8, attempt=1))
    tell(saved_ten, JobFailed(saved_ten.yard.now_s, "a", "exit", "it failed", 1, 1))
    assert "done again" not in story(saved_ten, "a")[-1]


def test_a_job_that_the_core_does_not_take_is_not_kept(tmp_path):
    with controller_of(tmp_path / "store.db") as (controller, _):
        job = Job("a", 0.0, 1, gpu_type="K80", duration_s=1.0)
        answer = controller.submit(job, Info(1, "a", "ann", {}, 0.0))
        controller.commit()
        assert answer[0].why == "no node has GPUs of type K80"
        with controller.store.engine.connect() as connection:
            assert reading.job_row(connection, "a") is None
            assert reading.last_seq(connection) == 1  # that it was refused is written down
        assert "a" not in controller.ledger.infos
        assert controller.number == 0
        hand_in(controller, "a")
        assert controller.number == 1


def test_a_core_that_fails_half_way_is_not_gone_on_with(tmp_path, monkeypatch):
    with controller_of(tmp_path / "store.db") as (controller, _):

        def fail(*_):
            raise ZeroDivisionError("a mistake of ours")

        monkeypatch.setattr(controller.yard, "submit", fail)
        with pytest.raises(BrokenError, match="the core failed at JobSubmitted of a: ZeroDivisionError"):
            controller.tell(JobSubmitted(0.0, Job("a", 0.0, 1, duration_s=1.0)))


def test_a_job_that_is_over_is_kept_as_users_see_it(tmp_path):
    with controller_of(tmp_path / "store.db") as (controller, _):
        hand_in(controller, "a")
        decide(controller)
        tell(controller, JobFinished(4.0, "a", attempt=1))
        with controller.store.engine.connect() as connection:
            (view,) = reading.ended_jobs(connection)
            assert (view["state"], view["exit_code"], view["finished_s"]) == ("done", 0, 4.0)
            row = reading.job_row(connection, "a")
            assert (row["state"], row["finished_s"]) == ("done", 4.0)
            numbers = [n for (n,) in connection.execute(text("SELECT seq FROM events ORDER BY seq"))]
        assert numbers == [1, 2, 3]
