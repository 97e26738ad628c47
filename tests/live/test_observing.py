"""From what a backend shows to what the core is told; a look proves what it shows and nothing else."""

import pytest

from live_cases import RUNNING, controller_of, hand_in
from trainyard.core.events import JobCancelled
from trainyard.live.backends.base import Ended, MemberKey, MemberState, Observation, Progress, RunKey, Seen
from trainyard.model.terms import Terms

KEY, MEMBER = RunKey("a", 1), MemberKey("a", 1, "n0")
LOST, ABSENT = Seen(MemberState.LOST), Seen(MemberState.ABSENT)


@pytest.fixture
def controller(tmp_path):
    """A job was started at 10, monotonic."""
    with controller_of(tmp_path / "store.db") as (controller, _):
        hand_in(controller, "a", terms=Terms(retries=3))
        controller.decide()
        controller.commit()
        controller.mark_done(controller.sent, 10.0)
        controller.commit()
        controller.clock.now_s = 5.0
        yield controller


def look(controller, members, began=11.0, **progress):
    said = {KEY: Progress(**progress)} if progress else {}
    seq = controller.ledger.seq
    todo = controller.observe(Observation(members, said), began)
    controller.commit()
    with controller.store.engine.connect() as connection:
        from trainyard.live.store.reading import events_after

        return [row["kind"] for row in events_after(connection, seq)], todo


def state(controller):
    return controller.published.job("a")["state"]


def test_a_look_that_began_before_the_start_was_carried_out_proves_nothing(controller):
    assert look(controller, {}, began=9.0) == ([], ([], [], [], [], []))
    kinds, _ = look(controller, {}, began=11.0)
    assert kinds == ["JobFailed"]
    assert state(controller) == "killing"


def test_what_was_started_and_is_not_begun_is_started_again(controller):
    kinds, todo = look(controller, {MEMBER: ABSENT})
    assert (kinds, todo.restart) == ([], [KEY])


def test_a_confirmed_start_is_told_once(controller):
    assert look(controller, {MEMBER: RUNNING})[0] == ["JobStarted"]
    assert look(controller, {MEMBER: RUNNING})[0] == []


def test_who_lost_his_shim_is_killed_and_gone_once_nothing_is_there(controller):
    kinds, _ = look(controller, {MEMBER: LOST})
    assert (kinds, state(controller)) == (["JobFailed"], "killing")
    kinds, todo = look(controller, {MEMBER: LOST})
    assert (kinds, todo.kill) == ([], [KEY])
    kinds, _ = look(controller, {MEMBER: Seen(MemberState.EXITED, Ended(lost=True))})
    assert (kinds, state(controller)) == (["JobGone"], "waiting")
    assert controller.forgettable == [KEY]


def test_a_run_that_was_killed_and_is_not_there_is_gone(controller):
    """However it vanished: only after the kill was carried out that is certain."""
    controller.tell(JobCancelled(5.0, "a", at_once=True))
    controller.commit()
    kinds, todo = look(controller, {}, began=12.0)
    assert (kinds, todo.kill, state(controller)) == ([], [KEY], "killing")
    controller.mark_done(controller.sent[-1:], 13.0)
    assert look(controller, {}, began=12.5)[0] == []
    assert look(controller, {}, began=14.0)[0] == ["JobGone"]
    assert state(controller) == "cancelled"


def test_the_last_words_of_a_run_are_told_before_its_end(controller):
    ended = Seen(MemberState.EXITED, Ended())
    kinds, _ = look(controller, {MEMBER: ended}, at=1.0, samples_done=7.0, samples_saved=7.0)
    assert kinds == ["ProgressReported", "CheckpointWritten", "JobFinished"]


def test_reports_are_heard_although_the_wall_clock_was_set_back(controller):
    look(controller, {MEMBER: RUNNING}, at=1000.0, samples_done=1.0, samples_total=100.0)
    controller.clock.now_s += 1.0
    kinds, _ = look(controller, {MEMBER: RUNNING}, at=1000.0, samples_done=1.0)
    assert kinds == []  # the same file
    kinds, _ = look(controller, {MEMBER: RUNNING}, at=10.0, samples_done=50.0)
    assert kinds == ["ProgressReported"]


def test_nothing_is_kept_of_runs_that_are_over(controller):
    look(controller, {MEMBER: Seen(MemberState.EXITED, Ended())})
    controller.mark_done(controller.sent, 20.0)  # it comes late
    assert (controller.started, controller.killed, controller.observer.heard) == ({}, {}, {})
