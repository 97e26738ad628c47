"""Snapshot files: the state of a cluster and its jobs at one moment, for one decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.errors import did_you_mean
from trainyard.files.cluster_file import read_cluster
from trainyard.files.document import load_document
from trainyard.files.job_check import JobCheck
from trainyard.files.job_fields import JOB_KEYS, POSITIVE, JobBuilder, accept_values
from trainyard.files.profiles_file import parse_profile
from trainyard.files.reading import StrPath
from trainyard.files.section import Section
from trainyard.files.values import FieldError, Number, Whole, near_miss
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Profile

SNAPSHOT_KEYS = ("now_s", "cluster", "jobs")
PROGRESS_KEYS = ("remaining_samples", "remaining_s", "attained_gpu_s", "allocation")
SHARE_KEYS = ("gpus", "servers", "cpus", "memory_gb")
SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class SnapshotJob:
    """A job and how far it is."""

    job: Job
    remaining_samples: float | None = None
    remaining_s: float | None = None
    attained_gpu_s: float = 0.0
    allocation: Allocation | None = None


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    """All that a decision needs to know."""

    now_s: float
    cluster: Cluster
    jobs: tuple[SnapshotJob, ...]


def load_snapshot(path: StrPath, profiles: Mapping[str, Profile] | None = None) -> SnapshotSpec:
    """Read a snapshot; "-" is the standard input. `profiles` are the models that its jobs may name."""
    root = load_document(path, "a snapshot: now_s, cluster, jobs")
    root.only(SNAPSHOT_KEYS)
    now_s = root.need("now_s", Number())
    cluster = read_cluster(root.section("cluster"))
    reader = _Reader(cluster, JobBuilder(profiles or {}, "jobs[{}]"))
    jobs = [reader.read(section, i) for i, section in enumerate(root.sections("jobs"))]
    return SnapshotSpec(now_s, cluster, tuple(sorted(jobs, key=lambda entry: entry.job.arrival_s)))


class _Reader:
    """Reads the jobs of one snapshot and keeps count of what they hold."""

    def __init__(self, cluster: Cluster, builder: JobBuilder) -> None:
        self._builder, self._check = builder, JobCheck(cluster)
        self._nodes = {node.node_id: node for node in cluster.nodes}
        self._held: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def read(self, section: Section, index: int) -> SnapshotJob:
        names = [str(key) for key in section.data]
        for name in names:
            if near := near_miss(name, names, (*JOB_KEYS, *PROGRESS_KEYS)):
                raise section.error(near, name)
        job = self._job(section, index)
        _check_remaining(section, job)
        return SnapshotJob(
            job,
            section.get("remaining_samples", POSITIVE, None),
            section.get("remaining_s", POSITIVE, None),
            section.get("attained_gpu_s", Number(), 0.0),
            self._allocation(section, job),
        )

    def _job(self, section: Section, index: int) -> Job:
        inline, place = section.data.get("profile"), (*section.path, "profile")
        profile = None
        if inline is not None:
            profile = parse_profile(inline, section.where, line_of=section.line_of, path=place)
        try:
            job = self._builder.build(accept_values(section.data, profile), index)
            self._check(job)
            return job
        except FieldError as wrong:
            raise section.error(wrong.what, wrong.field) from None

    def _allocation(self, section: Section, job: Job) -> Allocation | None:
        if not section.data.get("allocation"):
            return None
        entry = section.section("allocation")
        allocation = Allocation(tuple(self._share(entry, node, job) for node in entry.data))
        if not job.least_gpus <= allocation.gpus <= job.most_gpus:
            right = f"{job.least_gpus}" + (f" to {job.most_gpus}" if job.elastic else "")
            raise entry.error(f"{allocation.gpus} GPUs in all; job '{job.job_id}' must have {right}")
        return allocation

    def _share(self, entry: Section, node_id: object, job: Job) -> Share:
        node = self._nodes.get(str(node_id))
        if node is None:
            raise entry.error(
                f"unknown node '{node_id}'{did_you_mean(str(node_id), self._nodes)}", str(node_id)
            )
        share = _read_share(entry.section(node.node_id), node)
        if share.gpus and job.gpu_type not in ("", node.gpu_type):
            what = f"the node has {node.gpu_type} GPUs; job '{job.job_id}' must run on {job.gpu_type}"
            raise entry.error(what, node.node_id)
        self._hold(share, node, entry)
        return share

    def _hold(self, share: Share, node: Node, entry: Section) -> None:
        """Add a share to what its node gives, which must not be more than it has."""
        held = self._held[node.node_id]
        had = (("gpus", node.gpus), ("cpus", node.cpus), ("memory_gb", node.memory_gb))
        for i, (name, capacity) in enumerate(had):
            held[i] += getattr(share, name)
            if held[i] > capacity * (1 + SLACK):
                what = f"the jobs up to this one hold {held[i]:g} {name} of this node; it has {capacity:g}"
                raise entry.error(what, node.node_id, name)


def _check_remaining(section: Section, job: Job) -> None:
    samples = section.get("remaining_samples", POSITIVE, None)
    seconds = section.get("remaining_s", POSITIVE, None)
    if samples is not None and seconds is not None:
        raise section.error(
            "remaining_samples and remaining_s are both given; give one of them", "remaining_s"
        )
    if samples is not None and job.samples is None:
        raise section.error("the job's work is given as duration_s; give remaining_s", "remaining_samples")
    for name, left, total in (("samples", samples, job.samples), ("duration_s", seconds, job.duration_s)):
        if left is not None and total is not None and left > total:
            field = "remaining_samples" if name == "samples" else "remaining_s"
            raise section.error(
                f"{left:g} is more than the job's {name}; it must be at most {total:g}", field
            )


def _read_share(section: Section, node: Node) -> Share:
    section.only(SHARE_KEYS)
    gpus = section.need("gpus", Whole(0))
    servers = section.get("servers", Whole(0), 0)
    cpus = section.get("cpus", Number(), node.cpus / node.gpus * gpus)
    return Share(
        node.node_id,
        gpus,
        servers,
        cpus,
        section.get("memory_gb", Number(), node.memory_gb / node.gpus * gpus),
    )
