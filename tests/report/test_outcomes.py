"""How jobs ended, in words."""

from __future__ import annotations

from trainyard.report.outcomes import OF_WHOM, counted, how_they_ended, others


def summary(policy="p", **ends):
    counts = {"done": 0, "failed": 0, "cancelled": 0, "unfinished": 0} | ends
    return {"policy": policy, "jobs": sum(counts.values()), "outcomes": counts}


def test_only_ends_that_some_job_had_are_counted():
    assert counted(summary(done=93, failed=5)) == {"done": 93, "failed": 5}
    assert counted({"policy": "p"}) == {}


def test_nothing_is_said_when_all_jobs_are_done():
    assert others(summary(done=9)) == how_they_ended([summary(done=9), summary("q", done=9)]) == ""
    assert how_they_ended([summary()]) == others(summary()) == ""


def test_one_sentence_for_all_policies_alike():
    runs = [summary(p, done=93, failed=5, cancelled=2) for p in ("fifo", "srtf")]
    assert how_they_ended(runs) == f"Of 100 jobs 93 done, 5 failed, 2 cancelled. {OF_WHOM}"


def test_policies_that_differ_are_named():
    runs = [summary("fifo", done=3, unfinished=2), summary("srtf", done=5), summary("las", done=5)]
    assert how_they_ended(runs) == (f"Of 5 jobs, fifo: 3 done, 2 unfinished; srtf, las: 5 done. {OF_WHOM}")


def test_of_how_many_the_times_are():
    assert others(summary(done=90, failed=5, cancelled=2, unfinished=3)) == (
        "5 failed, 2 cancelled, 3 unfinished; times are of the 97 that ended"
    )
    assert others(summary(unfinished=3)) == "3 unfinished; times are of the 0 that ended"
