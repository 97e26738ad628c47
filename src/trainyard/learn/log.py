"""Decision logs: what a scheduler saw and decided, as JSON lines (docs/dl2.md), to be imitated later."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from trainyard.files.checking import check
from trainyard.files.cluster import build_cluster, cluster_record
from trainyard.files.job_check import JobCheck
from trainyard.files.job_reading import JobReader
from trainyard.files.jobs import job_record, json_value
from trainyard.files.output import write_bytes_atomic
from trainyard.files.position import Position, on_line
from trainyard.files.profiles import parse_profile, profile_record
from trainyard.files.reading import StrPath, name_of, read_text
from trainyard.files.snapshot import check_remaining
from trainyard.learn.episode import Scenario
from trainyard.learn.lessons import Moment, watch
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Shapes
from trainyard.state.jobs import Column, JobTable
from trainyard.state.queue import Queue
from trainyard.state.record import Record
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot

if TYPE_CHECKING:
    from trainyard.files.schemas import DecidedEntry, LogLine

C = Column


def write_log(path: StrPath, scenarios: Iterable[Scenario], teacher: Policy) -> None:
    """Run a teacher through scenarios and write down its decisions; gzip when the name ends in .gz."""
    records = (record for scenario in scenarios for record in log_records(scenario, watch(scenario, teacher)))
    data = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    # No time stamp in the gzip header: the same decisions give the same bytes.
    write_bytes_atomic(path, gzip.compress(data, 6, mtime=0) if str(path).endswith(".gz") else data)


def log_records(scenario: Scenario, moments: Iterable[Moment]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log as data: the cluster, jobs as they come, and decisions."""
    named = {job.model: job.profile for job in scenario.jobs if job.model and job.profile is not None}
    profiles = {name: profile_record(profile) for name, profile in named.items()}
    yield {"cluster": cluster_record(scenario.cluster), "slot_s": scenario.slot_s, "profiles": profiles}
    known: set[str] = set()
    for moment in moments:
        for job in moment.snapshot.table.jobs:
            if job.job_id not in known:
                known.add(job.job_id)
                yield {"job": job_record(job)}
        yield {"now_s": moment.snapshot.now_s, "jobs": list(_decided(moment))}


def _decided(moment: Moment) -> Iterator[dict[str, Any]]:
    """Every active job, in order of submission: how far it is, what it holds, and what it gets."""
    snapshot = moment.snapshot
    table, gets = snapshot.table, np.zeros((2, len(snapshot.table)), dtype=np.int64)
    gets[0, moment.ranked] = moment.shapes.gpus
    gets[1, moment.ranked] = moment.shapes.gpus if moment.shapes.servers is None else moment.shapes.servers
    left, left_s, attained = snapshot.remaining_samples(), snapshot.remaining_s(), snapshot.attained_gpu_s()
    for row in np.argsort(table.column(C.SEQ)).tolist():
        job = table.jobs[row]
        held = snapshot.target.get(job.job_id)
        unit, amount = ("remaining_samples", left) if job.samples is not None else ("remaining_s", left_s)
        yield {
            "job_id": job.job_id,
            "workers": int(gets[0, row]),
            "servers": int(gets[1, row]),
            unit: float(amount[row]),
            "attained_gpu_s": float(attained[row]),
            "held_workers": 0 if held is None else held.gpus,
            "held_servers": 0 if held is None else held.servers,
        }


def read_log(
    path: StrPath, profiles: Mapping[str, Profile] | None = None, learner: Policy | None = None
) -> Iterator[Moment]:
    """Yield the decisions of a log; `profiles` are further models that its jobs may name."""
    from trainyard.files import schemas

    where, book = name_of(path), None
    for number, row in enumerate(read_text(path, "a decision log: JSON lines").splitlines(), start=1):
        if not row.strip():
            continue
        place = on_line(where, number)
        line = check(schemas.LOG_LINE, json_value(row, place), place)
        if "cluster" in line:
            book = _Book(line, profiles or {}, learner or Policy("dl2"), place)
        elif book is None:
            raise place.error("the first line must have the cluster and slot_s")
        elif "job" in line:
            book.add(line["job"], place.at("job"))
        elif "now_s" in line and "jobs" in line:
            yield book.moment(line["now_s"], line["jobs"], place.at("jobs"))
        else:
            raise place.error("a line must have cluster and slot_s, or job, or now_s and jobs")


class _Book:
    """What is known of one cluster and its jobs while a log is read."""

    def __init__(
        self, line: LogLine, profiles: Mapping[str, Profile], learner: Policy, place: Position
    ) -> None:
        if "slot_s" not in line:
            raise place.error("slot_s is missing; it must be the seconds from one decision to the next")
        self.cluster: Cluster = build_cluster(line["cluster"], place.at("cluster"))
        self.slot_s = line["slot_s"]
        own = {
            name: parse_profile(given, place.where, name=name, line_of=place.line_of, path=("profiles", name))
            for name, given in line.get("profiles", {}).items()
        }
        self.reader = JobReader({**profiles, **own}, JobCheck(self.cluster))
        self.nodes, self.speed = NodeTable(self.cluster), SpeedModel(self.cluster)
        self.learner = learner
        self.jobs: dict[str, Job] = {}

    def add(self, given: object, place: Position) -> None:
        """Take note of a job."""
        job = self.reader.read(given, place)
        self.jobs[job.job_id] = job

    def moment(self, now_s: float, entries: list[DecidedEntry], place: Position) -> Moment:
        """Return one decision as the policy would have seen it."""
        table, waiting, running = JobTable(), Queue(), dict[str, Allocation]()
        gets: dict[str, tuple[int, int]] = {}
        for seq, entry in enumerate(entries):
            job_id, here = entry["job_id"], place.at(seq)
            job = self.jobs.get(job_id)
            if job is None or job_id in gets:
                what = "is there twice" if job_id in gets else "has no line of its own before this one"
                raise here.error(f"job '{job_id}' {what}; every job must have exactly one", "job_id")
            check_remaining(job, entry, here)
            gets[job_id] = entry["workers"], entry.get("servers", 0)
            table.add(record := self._record(job, seq, entry, now_s))
            held = entry.get("held_workers", 0), entry.get("held_servers", 0)
            if held[0]:  # where it sits makes no difference to what is seen
                running[job_id] = Allocation((Share(self.nodes.ids[0], *held, 0.0, 0.0),))
            else:
                waiting.add(record)
        free, up = Room.all_of(self.nodes), np.ones(len(self.nodes.ids), dtype=np.bool_)
        sensitivity = Sensitivity(self.cluster, self.speed)
        snapshot = Snapshot(now_s, self.nodes, self.speed, table, waiting, running, free, up, sensitivity)
        ranked = self.learner.ranked(snapshot)
        numbers = [gets[table.jobs[row].job_id] for row in ranked.tolist()]
        shapes = Shapes(*np.array(numbers, dtype=np.int64).reshape(-1, 2).T)
        return Moment(snapshot, ranked, self.slot_s, shapes)

    def _record(self, job: Job, seq: int, entry: DecidedEntry, now_s: float) -> Record:
        work = total, rate, _ = self.speed.work(job)
        type_index = self.nodes.type_index[job.gpu_type] if job.gpu_type else -1
        record = Record(job, seq, type_index, work, job.arrival_s, met=0.0)
        record.remaining = entry.get("remaining_samples", entry.get("remaining_s", total / rate) * rate)
        record.given, record.attained = entry.get("held_workers", 0), entry.get("attained_gpu_s", 0.0)
        record.since = record.given_since = now_s
        return record
