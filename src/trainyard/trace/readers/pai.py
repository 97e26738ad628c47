"""Alibaba PAI (cluster-trace-gpu-v2020, NSDI '22): the task and job tables, or a sample cut to four columns.

The tables have no header. One job is all GPU tasks of a `job_name`, which start together: its GPUs are the
sum of inst_num x max(1, plan_gpu / 100), so a share of a GPU counts as a whole one. It arrives when the job
table says it was submitted, or else when its first task started, and runs from the first start to the last
end. `gpu_type` is what a task got, not what it asked for, so it is not carried over. The sample has one job
for each task, 8.2 % of them, clamped at 172,800 s.
"""

from __future__ import annotations

from itertools import groupby
from math import ceil
from operator import methodcaller
from pathlib import Path

from trainyard.errors import InputError
from trainyard.trace.readers.cells import Row, Source, headerless
from trainyard.trace.readers.short_form import read_short
from trainyard.trace.records import Collector, Trace

NAME = "pai"
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK_COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time",
    "plan_cpu", "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
HOUR_S = 3600.0
STATES = ("Running", "Terminated", "Failed", "Waiting")


def read(source: Source) -> Trace:
    """Read the tables: `source` is either of them, the other one lies beside it."""
    tasks, jobs = _tables(source)
    submitted = {row.text("job_name"): row for row in headerless(jobs, JOB_COLUMNS)} if jobs else {}
    rows = Collector(tasks.where, NAME)
    by_name = methodcaller("text", "job_name")
    # The tables are sorted by nothing, so the tasks of a job are brought together first.
    for name, group in groupby(sorted(headerless(tasks, TASK_COLUMNS), key=by_name), key=by_name):
        _add(rows, name, list(group), submitted.get(name))
    return rows.trace(on_epoch=True)


def read_sample(source: Source) -> Trace:
    """Read the sample of tasks."""
    return read_short(source, NAME).trace()


def _tables(source: Source) -> tuple[Source, Source | None]:
    if len(source.head(1)[0].split(",")) != len(JOB_COLUMNS):
        return source, _beside(source, "task", "job")
    tasks = _beside(source, "job", "task")
    if tasks is None:
        what = "the job table says nothing of GPUs; put the task table (pai_task_table.csv) beside it"
        raise InputError(what, where=source.where)
    return tasks, source


def _beside(source: Source, this: str, other: str) -> Source | None:
    path = Path(source.where)
    there = path.with_name(path.name.replace(this, other))
    return Source.open(there) if there != path and there.is_file() else None


def _add(rows: Collector, name: str, tasks: list[Row], job: Row | None) -> None:
    with_gpus = [t for t in tasks if t.number("plan_gpu", 0) > 0 and t.number("inst_num", 0) > 0]
    timed = [t for t in with_gpus if t.number("start_time", 0) and t.number("end_time", 0)]
    if not with_gpus:
        return rows.drop("no GPUs")
    if len(timed) < len(with_gpus):
        return rows.drop("no start or no end")
    start = min(t.number("start_time") for t in timed)
    end = max(t.number("end_time") for t in timed)
    arrival = job.number("start_time", start) if job else start
    if any(t.number("plan_gpu") % 100 for t in timed):
        rows.change("share of a GPU rounded up to a whole one")
    tenant = job.text("user") if job else ""
    status = (job or timed[0]).text("status")
    # Both clocks are off by a constant that keeps the hour of the day and the day of the week in UTC+8.
    gpus = sum(map(_gpus, timed))
    return rows.add(name, arrival + 8 * HOUR_S, gpus, end - start, tenant=tenant, status=status)


def _gpus(task: Row) -> int:
    return task.whole("inst_num") * max(1, ceil(task.number("plan_gpu") / 100))


def is_row(cells: list[str]) -> bool:
    """Tell whether these are the cells of a row of the job or the task table."""
    return len(cells) in (len(JOB_COLUMNS), len(TASK_COLUMNS)) and cells[3] in STATES
