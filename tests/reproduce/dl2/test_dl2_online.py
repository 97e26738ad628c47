"""Streams with and without learning on: one tiny pass, and none without PyTorch."""

from __future__ import annotations

import pytest

from trainyard.learn.online import Learning
from trainyard.reproduce.dl2 import online
from trainyard.reproduce.dl2.online import DRIFT, FIXED, FOREIGN, LEARNS, WINDOWS, Scale, Stream

TINY = Scale(36, 500, Learning(every=20, after=2, block=5, blocks=9, iterations=3))


@pytest.mark.torch
def test_a_stream_in_tables_and_a_picture(monkeypatch):
    stream = Stream(FOREIGN, TINY)
    monkeypatch.setattr(online, "tasks", lambda quick: [stream])
    course = stream.carry_out()
    assert [len(jct) for jct in course.jct.values()] == [WINDOWS] * 4
    assert len(course.verdicts) == 1
    assert not course.verdicts[0].outcome.startswith("lost")
    assert course.came[0] >= 30
    assert course.jct[LEARNS][0] == course.jct[FIXED][0]  # they were over before the verdict
    tables = online.tables(True, {stream: course})
    assert [len(table.rows) for table in tables] == [WINDOWS, 1]
    assert [row["jobs so far"] for row in tables[0].records()] == [6, 12, 18, 24, 30, 36]
    assert online.pictures(tables)["dl2-online.png"].startswith(b"\x89PNG")


def test_other_kinds_come_in_the_second_half():
    jobs = Stream(DRIFT, TINY).jobs()
    assert len({job.job_id for job in jobs}) == len(jobs) == 36
    assert [job.arrival_s for job in jobs] == sorted(job.arrival_s for job in jobs)
    halves = [{job.model for job in half} for half in (jobs[:18], jobs[18:])]
    assert not halves[0] & halves[1]


def test_without_pytorch_there_is_nothing_to_do(monkeypatch):
    monkeypatch.setattr(online, "find_spec", lambda name: None)
    assert online.tasks(quick=False) == []
    assert online.tables(False, {}) == []
    assert online.pictures([]) == {}
