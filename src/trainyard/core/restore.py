"""A yard from a snapshot file, and one decision on it, job by job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from trainyard.core.events import JobStopped, JobSubmitted
from trainyard.core.instructions import Ignored, Instruction, Retune, Start, Stop, as_objects
from trainyard.core.lengths import set_total
from trainyard.core.real.nodes import reserve
from trainyard.core.yard import Yard
from trainyard.errors import InputError, PlanError
from trainyard.files.snapshot import SnapshotJob, SnapshotSpec
from trainyard.model.allocation import Allocation, Plan
from trainyard.model.tolerance import ROUGH_PART
from trainyard.state.corrections import restored as corrected
from trainyard.state.length import restored
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

if TYPE_CHECKING:
    from trainyard.files.schemas import BooksEntry, RecordEntry


class Replaceable:
    """Stands where the yard expects its policy, so that a restored yard can be asked about any policy."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ask: Callable[[Snapshot], Plan] | None = None

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return the fixed plan until there is a policy to ask."""
        if self.ask is not None:
            self.plan = self.ask(snapshot)
        return self.plan


class Answer(NamedTuple):
    """One decision: what each job gets, why others wait, what the policy says of it, guessed lengths."""

    plan: dict[str, dict[str, object]]
    waiting: dict[str, str]
    notes: Mapping[str, Any]
    estimates: dict[str, dict[str, object]]


def restore(spec: SnapshotSpec) -> tuple[Yard, Replaceable]:
    """Build a yard in the state that a snapshot describes."""
    arrived = [entry for entry in spec.jobs if entry.job.arrival_s <= spec.now_s]
    given = {entry.job.job_id: entry.allocation for entry in arrived if entry.allocation is not None}
    decide = Replaceable(Plan(changes=given))
    yard = Yard(replace(spec.cluster, reservations=()), decide, spec.rules)
    for node in spec.down:
        yard.node_failed(0.0, node)
    yard.out = []
    if spec.books is not None:
        _adopt(yard, spec, spec.books)
    else:
        _submit(yard, spec, arrived)
    if spec.cluster.reservations:  # only now: who holds something there may have begun before
        reserve(yard, spec.cluster.reservations, spec.now_s)
        _settle(yard, as_objects(yard.out), spec.now_s)
    return yard, decide


def _submit(yard: Yard, spec: SnapshotSpec, arrived: list[SnapshotJob]) -> None:
    """Take in jobs as users write them; the yard's first plan gives them what they hold."""
    for entry in arrived:
        for ignored in yard.handle(JobSubmitted(entry.job.arrival_s, entry.job)):
            if isinstance(ignored, Ignored):
                raise InputError(ignored.why)
        _set_progress(yard, entry)
        if yard.usage is not None:
            yard.usage.change(entry.job, spec.now_s, 0, entry.attained_gpu_s)
    try:
        yard.decide(spec.now_s)
    except PlanError as error:
        raise InputError(f"the jobs hold what they cannot have: {error}") from None
    yard.out = []
    yard.view.decided_s = -inf  # that one was not a policy's
    for job_id in yard.target:
        yard.records[job_id].since = spec.now_s  # it has been running: no start is to be paid for


def _adopt(yard: Yard, spec: SnapshotSpec, books: BooksEntry) -> None:
    """Take in the jobs and the books of a run."""
    yard.believe_corrections(corrected(books.get("corrections", ())))
    entries = {entry.job.job_id: entry for entry in spec.jobs}
    for job_id in books["rows"]:
        entry = entries[job_id]
        job, numbers = entry.job, entry.record
        assert numbers is not None
        type_index = yard.nodes.type_index[job.gpu_type] if job.gpu_type else -1
        arrived_s = numbers.get("arrived_s", job.arrival_s)
        record = Record(job, numbers["seq"], type_index, yard.speed.work(job), arrived_s, numbers["met"])
        record.remaining, record.since = numbers["remaining"], numbers["since_s"]
        record.attained, record.executed = numbers["attained"], numbers["executed"]
        record.saved, record.run_since_s = numbers["saved"], numbers["run_since_s"]
        record.restarts, record.preemptions = numbers["restarts"], numbers["preemptions"]
        record.trained_with, record.first_start_s = numbers["trained_with"], numbers.get("first_start_s")
        record.given_since = numbers["given_since_s"]
        record.reported_s, record.pace = numbers.get("reported_s", -1.0), numbers.get("pace", 1.0)
        record.reference_rate *= record.pace
        _set_length(yard, record, numbers)
        yard.adopt(record, entry.allocation, numbers)
        _agree(entry, record, spec.now_s, yard.model.reference_rate(job))
    yard.set_books(spec.now_s, books)


def _set_length(yard: Yard, record: Record, numbers: RecordEntry) -> None:
    """Take in what was believed of the length of a job that nobody told."""
    if "length" in numbers:
        record.length, record.total = restored(numbers["length"])
        record.ideal_s = record.total / record.reference_rate
    elif not record.total:
        yard.lengths.begin(record)


def _agree(entry: SnapshotJob, record: Record, now_s: float, reference_rate: float) -> None:
    """Refuse progress as users write it that is not what the core's own numbers say."""
    left, samples = record.remaining_at(now_s), entry.remaining_samples
    if entry.remaining_s is not None:
        samples = entry.remaining_s * reference_rate
    for name, told, known in (
        ("remaining_samples" if entry.remaining_s is None else "remaining_s", samples, left),
        ("attained_gpu_s", entry.attained_gpu_s, record.attained_gpu_s(now_s)),
    ):
        if told is not None and abs(told - known) > ROUGH_PART * max(abs(known), 1.0):
            right = "change that too, or leave out every 'record' and 'books'"
            raise InputError(f"job '{record.job_id}': its '{name}' is not what its 'record' says; {right}")


def _set_progress(yard: Yard, entry: SnapshotJob) -> None:
    record = yard.records[entry.job.job_id]
    record.attained = entry.attained_gpu_s
    if record.length is not None:
        _set_left(yard, record, entry)
    elif entry.remaining_samples is not None:
        record.remaining = entry.remaining_samples
    elif entry.remaining_s is not None:
        record.remaining = entry.remaining_s * record.reference_rate


def _set_left(yard: Yard, record: Record, entry: SnapshotJob) -> None:
    """Of a job whose length nobody told: how much is left, or else how long it has run, may be known."""
    left, done = entry.remaining_samples, entry.attained_gpu_s / record.gpus * record.reference_rate
    if entry.remaining_s is not None:
        left = entry.remaining_s * record.reference_rate
    yard.lengths.begin(record, done)
    if left is not None:
        set_total(record, done + left)


def answer(spec: SnapshotSpec, ask: Callable[[Snapshot], Plan]) -> Answer:
    """Ask for a decision on a snapshot, one that says why jobs wait, and describe the outcome."""
    yard, decide = restore(spec)
    decide.ask, now_s = ask, spec.now_s
    yard.out = []
    yard.decide(now_s)  # and a plan that cannot be carried out is told at once
    started = _settle(yard, as_objects(yard.out), now_s)
    started += _settle(yard, _go_on(yard, now_s), now_s)
    predicted = {i.job_id: i for i in started}
    plan = {
        job_id: describe(yard, job_id, allocation, predicted.get(job_id), now_s)
        for job_id, allocation in sorted(yard.target.items(), key=lambda item: yard.records[item[0]].seq)
    }
    waiting = {job_id: str(refusal) for job_id, refusal in decide.plan.why.items()} | _to_come(spec)
    return Answer(plan, waiting, decide.plan.notes, _estimates(yard, now_s))


def _estimates(yard: Yard, now_s: float) -> dict[str, dict[str, object]]:
    """What is believed of jobs whose length nobody told: seconds of work as requested, in all and left."""
    found: dict[str, dict[str, object]] = {}
    for record in yard.records.values():
        if record.length is not None:
            mean, p10, p90, source = record.length.estimate
            left = {"remaining_s": record.remaining_s(now_s), "source": source}
            found[record.job_id] = {"mean_s": mean, "p10_s": p10, "p90_s": p90, **left}
    return found


def _to_come(spec: SnapshotSpec) -> dict[str, str]:
    """Why jobs wait that are not there yet."""
    late = [entry.job for entry in spec.jobs if entry.job.arrival_s > spec.now_s]
    return {job.job_id: f"arrives at {job.arrival_s:.15g} s" for job in late}


def _go_on(yard: Yard, now_s: float) -> list[Instruction]:
    """Start what was given GPUs before, as far as no job is still stopping there."""
    yard.out = []
    yard.go_on(now_s)
    return as_objects(yard.out)


def _settle(yard: Yard, instructions: list[Instruction], now_s: float) -> list[Start | Retune]:
    """Confirm every stop at once; return what starts."""
    started: list[Start | Retune] = []
    for instruction in instructions:
        if isinstance(instruction, Stop):
            started += _settle(yard, yard.handle(JobStopped(now_s, instruction.job_id)), now_s)
        elif isinstance(instruction, (Start, Retune)):
            started.append(instruction)
    return started


def _end_s(record: Record, now_s: float) -> float:
    """When a running job ends if nothing changes."""
    return max(now_s, record.since) + record.remaining_at(now_s) / record.rate


def describe(
    yard: Yard, job_id: str, allocation: Allocation, change: Start | Retune | None, now_s: float
) -> dict[str, object]:
    """Describe one planned job."""
    record = yard.records[job_id]
    shape = yard.nodes.shape_of(allocation)
    split = yard.speed.batch_split(record.job, allocation)
    more: dict[str, object] = {} if split is None else {"batch": split}
    return more | {
        "workers": dict(shape.workers),
        "servers": shape.servers,
        "nodes": {
            s.node: {"gpus": s.gpus, "servers": s.servers, "cpus": s.cpus, "memory_gb": s.memory_gb}
            for s in allocation.shares
        },
        "samples_per_s": record.rate,
        "finish_s": _end_s(record, now_s) if change is None else change.finish_s,
    }
