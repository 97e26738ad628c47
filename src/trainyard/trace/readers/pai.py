"""Alibaba PAI (cluster-trace-gpu-v2020, NSDI '22): the task and job tables, or a sample cut to four columns.

The tables have no header. One job is all GPU tasks of a `job_name`, which start together: its GPUs are the
sum of inst_num x max(1, plan_gpu / 100), so a share of a GPU counts as a whole one. It arrives when the job
table says it was submitted, or else when its first task started, and runs from the first start to the last
end. `gpu_type` is what a task got, not what it asked for, so it is not carried over. The sample has one job
for each task, 8.2 % of them, clamped at 172,800 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
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


@dataclass(slots=True)
class _Gang:
    """What is known of a job after some of its tasks."""

    gpus: int = 0
    start: float = inf
    end: float = -inf
    status: str = ""
    timed: bool = True
    shares: bool = False

    def take(self, task: Row) -> None:
        """Add a task, if it has GPUs."""
        plan, instances = task.number("plan_gpu", 0), task.whole("inst_num", 0)
        if plan <= 0 or instances <= 0:
            return
        start, end = task.number("start_time", 0), task.number("end_time", 0)
        self.timed &= start > 0 and end > 0
        self.start, self.end = min(self.start, start), max(self.end, end)
        self.gpus += instances * max(1, ceil(plan / 100))
        self.shares |= plan % 100 > 0
        self.status = self.status or task.text("status")


def read(source: Source) -> Trace:
    """Read the tables: `source` is either of them, the other one lies beside it."""
    tasks, jobs = _tables(source)
    gangs: dict[str, _Gang] = {}
    for row in headerless(tasks, TASK_COLUMNS):
        gangs.setdefault(row.text("job_name"), _Gang()).take(row)
    submitted = _submissions(jobs) if jobs else {}
    rows = Collector(tasks.where, NAME)
    for name, gang in gangs.items():
        _add(rows, name, gang, submitted.get(name, ("", gang.status, gang.start)))
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


def _submissions(jobs: Source) -> dict[str, tuple[str, str, float]]:
    """Return user, status and time of submission of every job that has one."""
    return {
        row.text("job_name"): (row.text("user"), row.text("status"), row.number("start_time"))
        for row in headerless(jobs, JOB_COLUMNS)
        if row.text("start_time")
    }


def _add(rows: Collector, name: str, gang: _Gang, submitted: tuple[str, str, float]) -> None:
    if gang.gpus and not gang.timed:
        return rows.drop("no start or no end")
    if gang.shares:
        rows.change("share of a GPU rounded up to a whole one")
    user, status, arrival = submitted
    # The clock is off by a constant that keeps the hour of the day and the day of the week in UTC+8.
    return rows.add(name, arrival + 8 * HOUR_S, gang.gpus, gang.end - gang.start, tenant=user, status=status)


def is_row(cells: list[str]) -> bool:
    """Tell whether these are the cells of a row of the job or the task table."""
    return len(cells) in (len(JOB_COLUMNS), len(TASK_COLUMNS)) and cells[3] in STATES
