"""Snapshot files: the state of a cluster and its jobs at one moment, for one decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainyard.errors import did_you_mean
from trainyard.files.checking import check
from trainyard.files.cluster import build_cluster
from trainyard.files.document import load_document
from trainyard.files.job_check import JobCheck
from trainyard.files.job_reading import JobReader, Note, tell_unused
from trainyard.files.position import Position
from trainyard.files.reading import StrPath
from trainyard.files.unmatched import tell_unmatched
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.rules import Rules
from trainyard.model.tolerance import CPUS_GB

if TYPE_CHECKING:
    from trainyard.files.schemas import BooksEntry, DecidedEntry, ProgressEntry, RecordEntry, ShareEntry


@dataclass(frozen=True, slots=True)
class SnapshotJob:
    """A job and how far it is."""

    job: Job
    remaining_samples: float | None = None
    remaining_s: float | None = None
    attained_gpu_s: float = 0.0
    allocation: Allocation | None = None
    record: RecordEntry | None = None  # the core's own numbers, in a snapshot of a run


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    """All that a decision needs to know."""

    now_s: float
    cluster: Cluster
    jobs: tuple[SnapshotJob, ...]
    rules: Rules = field(default_factory=Rules)
    down: tuple[str, ...] = ()  # nodes
    books: BooksEntry | None = None  # the core's own, in a snapshot of a run


def load_snapshot(
    path: StrPath, profiles: Mapping[str, Profile] | None = None, note: Note | None = None
) -> SnapshotSpec:
    """Read a snapshot; "-" is the standard input. `profiles` are the models that its jobs may name.

    `note` is told of fields of jobs that are not used.
    """
    from trainyard.files import schemas

    data, place = load_document(path, "a snapshot: now_s, cluster, jobs")
    given = check(schemas.SNAPSHOT, data, place)
    cluster = build_cluster(given["cluster"], place.at("cluster"))
    reader, holdings = JobReader(profiles or {}, JobCheck(cluster), needs_work=False), _Holdings(cluster)
    jobs: list[SnapshotJob] = []
    for i, entry in enumerate(given["jobs"]):
        here = place.at("jobs", i)
        progress = check(schemas.PROGRESS, entry, here)
        job = reader.read(entry, here)
        check_remaining(job, progress, here)
        shares = progress.get("allocation")
        if shares and job.arrival_s > given["now_s"]:
            arrives = f"job '{job.job_id}' arrives at {job.arrival_s:.15g} s, after now_s"
            raise here.error(f"{arrives}; it must not hold GPUs yet", "allocation")
        reader.unused.difference_update(schemas.ProgressEntry.__annotations__)
        allocation = holdings.add(job, shares, here.at("allocation")) if shares else None
        left, left_s = progress.get("remaining_samples"), progress.get("remaining_s")
        attained_gpu_s, record = progress.get("attained_gpu_s", 0.0), progress.get("record")
        jobs.append(SnapshotJob(job, left, left_s, attained_gpu_s, allocation, record))
    tell_unused(note, place.where, "fields", reader.unused)
    tell_unmatched(note, cluster, (entry.job for entry in jobs), place.where, place.where)
    jobs.sort(key=lambda entry: entry.job.arrival_s)
    down = _down(given.get("down", []), cluster, jobs, place.at("down"))
    books = _books(given.get("books"), cluster, jobs, place.at("books"))
    return SnapshotSpec(given["now_s"], cluster, tuple(jobs), Rules(**given.get("rules", {})), down, books)


def _down(down: list[str], cluster: Cluster, jobs: list[SnapshotJob], place: Position) -> tuple[str, ...]:
    """Nodes that are down; no job may hold anything there."""
    held = {share.node: j.job.job_id for j in jobs if j.allocation for share in j.allocation.shares}
    known = {node.node_id for node in cluster.nodes}
    for i, node in enumerate(down):
        if node not in known:
            raise place.error(f"unknown node '{node}'{did_you_mean(node, known)}", str(i))
        if node in held:
            what = f"node '{node}' is down, but job '{held[node]}' holds a part of it"
            raise place.error(f"{what}; it must hold none", str(i))
    return tuple(dict.fromkeys(down))


def _books(
    books: BooksEntry | None, cluster: Cluster, jobs: list[SnapshotJob], place: Position
) -> BooksEntry | None:
    """The core's books, if they are there; they must be about these jobs and nodes."""
    if books is None:
        return None
    names = sorted(entry.job.job_id for entry in jobs)
    numbered = {entry.record["seq"] for entry in jobs if entry.record is not None}
    if len(numbered) < len(jobs) or sorted(books["rows"]) != names:
        raise place.error("it must name every job once, each with a 'record' and a seq of its own", "rows")
    if sorted(books["target"]) != sorted(entry.job.job_id for entry in jobs if entry.allocation is not None):
        raise place.error("it must name every job that has an allocation once", "target")
    for name in ("free_cpus", "free_memory_gb"):
        numbers = books[name]
        has = [node.cpus if name == "free_cpus" else node.memory_gb for node in cluster.nodes]
        fits = len(numbers) == len(has) and all(isinstance(n, (int, float)) for n in numbers)
        if not fits or not all(-CPUS_GB <= n <= most + CPUS_GB for n, most in zip(numbers, has, strict=True)):
            raise place.error("it must have a number for each node, at most what the node has", name)
    return books


def check_remaining(job: Job, progress: ProgressEntry | DecidedEntry, place: Position) -> None:
    """Refuse more work left than there was, and work in another unit than the job's."""
    samples, seconds = progress.get("remaining_samples"), progress.get("remaining_s")
    if samples is not None and seconds is not None:
        raise place.error("remaining_samples and remaining_s are both given; give one of them", "remaining_s")
    if samples is not None and job.samples is None and job.duration_s is None and job.profile is None:
        what = "samples need a model or a profile to tell their speed; give one, or remaining_s"
        raise place.error(what, "remaining_samples")
    if samples is not None and job.duration_s is not None:
        raise place.error("the job's work is given as duration_s; give remaining_s", "remaining_samples")
    if samples is not None and job.samples is not None and samples > job.samples:
        what = f"{samples:g} is more than the job's samples; it must be at most {job.samples:g}"
        raise place.error(what, "remaining_samples")
    if seconds is not None and job.duration_s is not None and seconds > job.duration_s:
        what = f"{seconds:g} is more than the job's duration_s; it must be at most {job.duration_s:g}"
        raise place.error(what, "remaining_s")


class _Holdings:
    """What the jobs of a snapshot hold of each node."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes = {node.node_id: node for node in cluster.nodes}
        self._held: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def add(self, job: Job, shares: Mapping[str, ShareEntry], place: Position) -> Allocation:
        """Make a job's allocation, which must suit the job and leave no node with less than nothing."""
        allocation = Allocation(tuple(self._share(job, n, shares[n], place) for n in shares))
        if not job.least_gpus <= allocation.gpus <= job.most_gpus:
            right = f"{job.least_gpus}" + (f" to {job.most_gpus}" if job.elastic else "")
            raise place.error(f"{allocation.gpus} GPUs in all; job '{job.job_id}' must have {right}")
        if job.sizes and allocation.gpus not in job.sizes:
            right = " or ".join(map(str, job.sizes))
            raise place.error(f"{allocation.gpus} GPUs in all; job '{job.job_id}' must have {right}")
        return allocation

    def _share(self, job: Job, node_id: str, given: ShareEntry, place: Position) -> Share:
        node = self._nodes.get(node_id)
        if node is None:
            raise place.error(f"unknown node '{node_id}'{did_you_mean(node_id, self._nodes)}", node_id)
        gpus = given["gpus"]
        if gpus and job.gpu_type not in ("", node.gpu_type):
            what = f"the node has {node.gpu_type} GPUs; job '{job.job_id}' must run on {job.gpu_type}"
            raise place.error(what, node_id)
        servers = given.get("servers", 0)
        apart = job.profile is not None and job.profile.apart
        need = job.need(gpus, servers) if apart else (0.0, 0.0)
        cpus = given.get("cpus", need[0] if apart else node.cpus / node.gpus * gpus)
        memory_gb = given.get("memory_gb", need[1] if apart else node.memory_gb / node.gpus * gpus)
        for name, has, least in (("cpus", cpus, need[0]), ("memory_gb", memory_gb, need[1])):
            if has < least * (1 - CPUS_GB):
                what = f"{has:g} {name} are too few; the workers and servers there need {least:g}"
                raise place.at(node_id).error(what, name)
        share = Share(node_id, gpus, servers, cpus, memory_gb)
        self._hold(share, node, place.at(node_id))
        return share

    def _hold(self, share: Share, node: Node, place: Position) -> None:
        held = self._held[node.node_id]
        had = (("gpus", node.gpus), ("cpus", node.cpus), ("memory_gb", node.memory_gb))
        for i, (name, capacity) in enumerate(had):
            held[i] += getattr(share, name)
            if held[i] > capacity * (1 + CPUS_GB):
                what = f"the jobs up to this one hold {held[i]:g} {name} of this node; it has {capacity:g}"
                raise place.error(what, name)
