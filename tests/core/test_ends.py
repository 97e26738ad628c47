"""How a run can end: what it is called, what is counted, and what becomes of the job."""

from __future__ import annotations

import signal

import pytest

from real_cases import Real, on, real
from trainyard.core.events import (
    CheckpointWritten,
    JobFailed,
    JobGone,
    JobReleased,
    JobRetried,
    JobStarted,
    NodeFailed,
    ProgressReported,
)
from trainyard.core.instructions import Kill, Start
from trainyard.core.real.ends import ENDS, Then, forgive, judge, kind_of
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.terms import Terms
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

RULES = Rules()
STOP, SAID = {"stop_asked": True}, {"stop_asked": True, "said_finished": True}


@pytest.mark.parametrize(
    ("code", "died_of", "more", "kind"),
    [
        (0, None, {}, "done"),
        (0, None, SAID, "done"),
        (0, None, STOP, "stopped"),
        (75, None, STOP, "saved"),
        (75, None, SAID, "saved"),
        (75, None, {}, "saved_itself"),
        (1, None, {}, "exit"),
        (1, None, STOP, "exit"),
        (255, None, {}, "exit"),
        (9, None, {"transient": (3, 9)}, "transient"),
        (8, None, {"transient": (3, 9)}, "exit"),
        (126, None, {}, "cannot_start"),
        (127, None, {}, "cannot_start"),
        *((None, s, {}, "crash") for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL)),
        *((None, s, {}, "crash") for s in (signal.SIGFPE, signal.SIGABRT, signal.SIGSYS)),
        *((None, s, {}, "killed") for s in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
        (137, None, {"out_of_memory": True}, "memory"),
        (None, signal.SIGKILL, {"out_of_memory": True}, "memory"),
        (0, None, {"out_of_memory": True}, "memory"),
    ],
)
def test_what_an_end_is_called(code, died_of, more, kind):
    assert kind_of(code, died_of, **more) == kind


def test_every_name_of_a_bad_end_is_judged():
    counted = {kind for kind, then in ENDS.items() if then is Then.COUNTED}
    assert counted == {"exit", "crash", "memory"}
    final = {kind for kind, then in ENDS.items() if then is Then.FINAL}
    assert final == {"cannot_start", "time_limit", "max_wait"}
    assert {kind for kind, then in ENDS.items() if then is Then.START} == {"start"}


def record_of(terms):
    return Record(Job("a", 0.0, 4, 100.0, terms=terms), 1, -1, (400.0, 4.0, 100.0), 0.0, 0.0)


@pytest.mark.parametrize("kind", ["exit", "crash", "memory"])
def test_counted_ends_take_one_retry_each(kind):
    record = record_of(Terms(retries=2))
    assert [judge(record, kind, 0.0, RULES).value for _ in range(3)] == ["waiting", "waiting", "failed"]
    assert record.trouble.counted == 3


def test_the_wait_doubles_up_to_five_minutes():
    record = record_of(Terms(retries=9))
    waits = []
    for now in range(1000, 9000, 1000):
        judge(record, "exit", float(now), RULES)
        waits.append(record.trouble.until_s - now)
    assert waits == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]


@pytest.mark.parametrize("kind", ["killed", "transient", "saved_itself", "node_lost", "evicted", "lost_shim"])
def test_the_fifth_idle_end_in_a_row_holds_the_job(kind):
    record = record_of(Terms())
    record.troubles().blame(kind, "why")
    assert [judge(record, kind, 0.0, RULES).value for _ in range(5)] == ["waiting"] * 4 + ["held"]
    assert (record.trouble.counted, record.trouble.until_s) == (0, 0.0)  # no retry, and no wait
    assert (record.trouble.code, record.trouble.text) == (
        "no_progress",
        f"5 restarts, none got past the start; last: {kind}",
    )


def test_progress_between_them_begins_the_count_anew():
    record = record_of(Terms())
    for _ in range(4):
        judge(record, "killed", 0.0, RULES)
    record.remaining -= 1.0
    assert [judge(record, "killed", 0.0, RULES).value for _ in range(5)] == ["waiting"] * 4 + ["held"]


def test_going_back_is_no_progress():
    record = record_of(Terms())
    record.remaining = 300.0
    judge(record, "killed", 0.0, RULES)
    record.remaining = 350.0
    assert [judge(record, "killed", 0.0, RULES).value for _ in range(4)] == ["waiting"] * 3 + ["held"]


def test_the_counters_do_not_meet():
    record = record_of(Terms(retries=1))
    for _ in range(4):
        assert judge(record, "killed", 0.0, RULES) is State.WAITING
    assert judge(record, "exit", 0.0, RULES) is State.WAITING
    assert [judge(record, "start", 0.0, RULES).value for _ in range(3)] == ["waiting", "waiting", "failed"]
    trouble = record.trouble
    assert (trouble.idle, trouble.counted, trouble.failed_starts) == (4, 1, 3)


@pytest.mark.parametrize("kind", ["cannot_start", "time_limit", "max_wait"])
def test_what_trying_again_would_not_mend_is_final(kind):
    assert judge(record_of(Terms(retries=9)), kind, 0.0, RULES) is State.FAILED


def test_a_job_of_a_trace_always_goes_on_but_for_its_own_errors():
    record = record_of(None)
    assert {judge(record, "node_lost", 0.0, RULES) for _ in range(9)} == {State.WAITING}
    assert judge(record, "exit", 0.0, RULES) is State.FAILED


def test_forgiving_begins_all_counters_anew():
    record = record_of(Terms(retries=1))
    for kind in ("killed", "exit", "start"):
        judge(record, kind, 0.0, RULES)
    record.trouble.unsaved = 2
    forgive(record)
    trouble = record.trouble
    assert (trouble.counted, trouble.idle, trouble.failed_starts, trouble.unsaved) == (0, 0, 0, 0)
    assert (trouble.until_s, trouble.code, trouble.text) == (0.0, "", "")
    assert [judge(record, "killed", 0.0, RULES).value for _ in range(5)] == ["waiting"] * 4 + ["held"]


# -- in a yard ---------------------------------------------------------------------------------------------


def test_a_crash_is_tried_again_after_a_while_and_then_is_the_end():
    r = Real(real(retries=1))
    r.decide(0.0, a=on(n0=4))
    assert r.tell(JobFailed(25.0, "a", "crash", "rank 0 died of SIGSEGV")) == []
    assert (r.waiting(), list(r.yard.parked), r.wake_s) == ([], ["a"], 35.0)
    assert r.record().remaining == 400.0 - 80.0  # the checkpoint at 20 s
    r.wait(34.9)
    assert r.waiting() == []
    r.wait(35.0)
    assert r.waiting() == ["a"]
    (start,) = r.decide(35.0, a=on(n1=4))
    assert (start.attempt, start.finish_s) == (2, 35.0 + 80.0)
    (ended,) = r.tell(JobFailed(40.0, "a", "crash", "rank 0 died of SIGSEGV"))
    assert (ended.state, ended.restarts, ended.gpu_s) == (State.FAILED, 1, 4 * (25.0 + 5.0))
    assert r.reason() == ("crash", "rank 0 died of SIGSEGV")


def test_three_starts_that_fail_in_a_row_are_the_end():
    r, now = Real(real()), 0.0
    for node, after in (("n0", "waiting"), ("n1", "waiting"), ("n0", "failed")):
        r.decide(now, a=on(**{node: 4}))
        r.tell(JobFailed(now + 1.0, "a", "start", "no image"))
        assert r.state() == after
        now += 1000.0
    assert r.reason() == ("start", "no image (3 tries on 2 nodes in 33 min)")


def test_a_start_that_went_well_begins_that_count_anew():
    r, now = Real(real()), 0.0
    for k in range(4):
        r.decide(now, a=on(n0=4))
        if k == 2:
            r.tell(JobStarted(now, "a"))
        r.tell(JobFailed(now + 1.0, "a", "start"))
        assert r.state() == "waiting"
        now += 1000.0


def kill_idly(r, times, now=0.0):
    for _ in range(times):
        r.decide(now, a=on(n0=4))
        r.tell(JobFailed(now + 5.0, "a", "killed", "killed by SIGKILL from outside"))
        now += 10.0
    return now


def test_a_job_that_gets_nowhere_is_held_and_goes_on_when_released():
    r = Real(real())
    now = kill_idly(r, 5)
    assert (r.state(), r.reason()[0], list(r.yard.parked)) == ("held", "no_progress", ["a"])
    assert r.record().trouble.text == "5 restarts, none got past the start; last: killed"
    r.tell(JobReleased(now, "a"))
    assert (r.state(), r.waiting(), r.reason()) == ("waiting", ["a"], ("", ""))
    kill_idly(r, 4, now)
    assert r.state() == "waiting"
    kill_idly(r, 1, now + 100.0)
    assert r.state() == "held"


def test_a_job_released_before_its_processes_are_gone_is_forgiven_too():
    r = Real(real())
    now = kill_idly(r, 4)
    r.decide(now, a=on(n0=4))
    assert r.tell(JobFailed(now, "a", "killed", gone=False)) == [Kill("a")]
    r.tell(JobReleased(now, "a"))
    r.tell(JobGone(now, "a"))
    assert (r.state(), r.waiting(), r.record().trouble.idle) == ("waiting", ["a"], 0)


def test_saved_work_is_progress_though_nobody_knows_the_length():
    """What is left is only believed and may grow; what is done is not."""
    r, now = Real(Job("a", 0.0, 4, terms=Terms())), 0.0
    for k in range(1, 9):
        r.decide(now, a=on(n0=4))
        r.tell(CheckpointWritten(now + 1000.0 * k, "a", 1000.0 * k**3))
        r.tell(JobFailed(now + 1000.0 * k, "a", "killed"))
        assert (r.state(), r.record().length.done) == ("waiting", 1000.0 * k**3)
        now += 1000.0 * k


def test_an_end_that_is_told_twice_is_counted_once():
    """The worker that failed first says why; that the others broke then, too, is no other end."""
    r = Real(real(retries=1, gpus=8))
    r.decide(0.0, a=on(n0=4, n1=4))
    assert r.tell(JobFailed(5.0, "a", "crash", "rank 0", gone=False)) == [Kill("a")]
    again = JobFailed(6.0, "a", "exit", "rank 4", gone=False)
    assert r.why(again) == "job a is being killed already"
    assert r.tell(JobFailed(7.0, "a", "exit", "rank 4")) == []
    assert (r.state(), r.reason(), r.record().trouble.counted) == ("waiting", ("crash", "rank 0"), 1)


def test_a_job_that_breaks_because_its_node_did_loses_no_retry():
    r = Real(real(gpus=8))
    r.decide(0.0, a=on(n0=4, n1=4))
    r.tell(NodeFailed(5.0, "GPU-1"))
    assert r.tell(JobFailed(6.0, "a", "exit", "NCCL error")) == []
    assert (r.state(), r.record().trouble.counted, r.reason()[0]) == ("waiting", 0, "node_lost")


def test_retry_gives_all_retries_again():
    r = Real(real(retries=1))
    for now in (0.0, 100.0):
        r.decide(now, a=on(n0=4))
        r.tell(ProgressReported(now + 1.0, "a", 4.0))
        r.tell(JobFailed(now + 1.0, "a", "exit"))
    assert r.state() == "failed"
    r.tell(JobRetried(200.0, "a"))
    (start,) = r.decide(200.0, a=on(n0=4))
    assert isinstance(start, Start)
    assert start.attempt == 3
    r.tell(JobFailed(201.0, "a", "exit"))
    assert (r.state(), r.wake_s) == ("waiting", 211.0)
