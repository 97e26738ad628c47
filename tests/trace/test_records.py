"""The rules that all readers share: what is left out, what is changed, and whose clock counts."""

from __future__ import annotations

import pytest

from trainyard.errors import InputError
from trainyard.trace.records import Collector, ConversionReport, second_of_week

DAY_S = 86_400


def brief(trace):
    return [(job.job_id, job.arrival_s, job.gpus, job.duration_s) for job in trace.jobs]


def test_rows_without_gpus_or_with_an_end_before_the_start_are_left_out():
    rows = Collector("t.csv", "mine")
    for gpus, run_s in ((0, 5.0), (-1, 5.0), (1, -0.5), (0, -1.0), (1, 5.0)):
        rows.add("a", 0.0, gpus, run_s)
    assert rows.report.dropped == {"no GPUs": 3, "ends before it starts": 1}
    assert rows.report.read == 5
    assert brief(rows.trace()) == [("a", 0, 1, 5)]


def test_a_row_that_is_left_out_does_not_take_its_name():
    rows = Collector("t.csv", "mine")
    rows.add("a", 0.0, 0, 5.0)
    rows.add("a", 1.0, 1, 5.0)
    assert [job.job_id for job in rows.trace().jobs] == ["a"]
    assert not rows.report.changed


def test_no_run_time_is_one_second_and_an_unknown_one_stays_unknown():
    rows = Collector("t.csv", "mine")
    rows.add("none", 0.0, 1, 0.0)
    rows.add("little", 0.0, 1, 0.25)
    rows.add("unknown", 0.0, 1, None, samples=7.0)
    trace = rows.trace()
    assert [job.duration_s for job in trace.jobs] == [1, 0.25, None]
    assert trace.jobs[2].samples == 7
    assert rows.report.changed == {"run time 0 raised to 1 s, the resolution of the log": 1}


def test_jobs_come_in_order_and_ties_keep_that_of_the_file():
    rows = Collector("t.csv", "mine")
    for name, at in (("late", 90.0), ("b", 40.0), ("a", 40.0), ("first", 30.0)):
        rows.add(name, at, 1, 1.0)
    assert [(job.job_id, job.arrival_s) for job in rows.trace().jobs] == [
        ("first", 0),
        ("b", 10),
        ("a", 10),
        ("late", 60),
    ]


def test_made_up_names_are_unique_too():
    rows = Collector("t.csv", "mine")
    for name in ("a", "a~2", "a", "a"):
        rows.add(name, 0.0, 1, 1.0)
    names = [job.job_id for job in rows.trace().jobs]
    assert names[:2] == ["a", "a~2"]
    assert len(set(names)) == 4
    assert set(rows.report.changed) == {"id used before, made unique"}


def test_the_origin_is_given_or_read_off_the_clock():
    def trace(**how):
        rows = Collector("t.csv", "mine")
        rows.add("b", 4 * DAY_S + 100.0, 1, 1.0)
        rows.add("a", 4 * DAY_S + 60.0, 1, 1.0)
        return rows.trace(**how)

    assert trace().origin_s is None
    assert trace(origin_s=5.0).origin_s == 5
    assert trace(on_epoch=True).origin_s == 60  # 1970-01-05 was a Monday
    assert trace(origin_s=5.0, on_epoch=True).origin_s == 60
    assert trace().format == "mine"


@pytest.mark.parametrize(
    ("epoch_s", "second"),
    [(0, 3 * DAY_S), (4 * DAY_S, 0), (4 * DAY_S - 1, 7 * DAY_S - 1), (1_502_064_000, 0)],
)
def test_the_week_begins_on_monday(epoch_s, second):
    assert second_of_week(epoch_s) == second  # 2017-08-07 was a Monday


def test_a_trace_without_jobs_is_an_error():
    rows = Collector("t.csv", "mine")
    rows.add("a", 0.0, 0, 1.0)
    with pytest.raises(InputError, match=r"^t.csv: no job with a GPU in this mine trace$"):
        rows.trace()


def test_the_report_in_words():
    report = ConversionReport(read=12_345)
    assert report.lines() == []
    report.dropped["no GPUs"] += 1_000
    report.changed["rounded"] += 2
    assert report.lines() == [
        "1,000 of 12,345 rows left out: no GPUs",
        "2 of 12,345 rows changed: rounded",
    ]
