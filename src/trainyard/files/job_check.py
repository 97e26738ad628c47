"""Jobs against a cluster: can every job run at all?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trainyard.errors import did_you_mean
from trainyard.files.position import Position
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.model.tenant import Tenant
from trainyard.model.tolerance import PART

NOWHERE = Position()


def check_jobs(jobs: Iterable[Job], cluster: Cluster, where: str) -> None:
    """Refuse the first job that could not run even if it had the whole cluster to itself."""
    check = JobCheck(cluster)
    for job in jobs:
        check(job, Position(where))


class Lack(NamedTuple):
    """Why a job can never run."""

    what: str  # is the matter
    right: str  # what would be
    field: str  # of the job


class JobCheck:
    """What the jobs of one cluster can have at most."""

    def __init__(self, cluster: Cluster) -> None:
        self._types = list(dict.fromkeys(node.gpu_type for node in cluster.nodes))
        self._nodes = {t: [node for node in cluster.nodes if node.gpu_type == t] for t in self._types}
        self._nodes[""] = list(cluster.nodes)
        self._gpus = {t: sum(node.gpus for node in nodes) for t, nodes in self._nodes.items()}
        self._tenants = cluster.tenants
        self._workers: dict[tuple[str, float, float], int] = {}

    def __call__(self, job: Job, place: Position = NOWHERE, gpus: int | None = None) -> None:
        """Refuse a job that could not run with so many GPUs, or its fewest; `place` is where it stands."""
        tenant = self._tenants.get(job.tenant)
        most = None if tenant is None else tenant.max_priority
        if most is not None and job.priority > most:
            what = f"job '{job.job_id}' has priority {job.priority}; those of tenant '{job.tenant}'"
            raise place.error(f"{what} must have at most {most}", "priority")
        lack = self.lack(job, gpus)
        if lack is not None:
            raise place.error(f"job '{job.job_id}' {lack.what}{lack.right}", lack.field)

    def lack(self, job: Job, gpus: int | None = None) -> Lack | None:
        """Say why a job could not run with so many GPUs, or its fewest, even alone; None if it could."""
        least, room = gpus or job.least_gpus, self._gpus.get(job.gpu_type)
        if room is None:
            hint = did_you_mean(job.gpu_type, self._types)
            return Lack(f"wants unknown GPU type '{job.gpu_type}'", hint, "gpu_type")
        if least > room:
            needs = f"{least} {job.gpu_type} GPUs" if job.gpu_type else f"{least} GPUs"
            what = f"needs {needs}; the cluster has {room}"
            return Lack(what, ", ask for at most that", "gpus" if least == job.gpus else "min_gpus")
        if job.tenant in self._tenants and (lack := _quota(job, self._tenants[job.tenant])):
            return lack
        if not job.particular:
            return None
        cpus, memory_gb = job.asked_per_gpu
        beside = least, cpus or 0.0, memory_gb or 0.0
        lack = self._beside(job, *beside)
        if lack is None and job.profile is not None and job.profile.apart and job.profile.server is not None:
            lack = self._servers(*beside, job.profile.server)
        return lack

    def _beside(self, job: Job, least: int, cpus: float, memory_gb: float) -> Lack | None:
        """See that enough GPUs have beside them the CPUs and the memory that each worker asks for."""
        room = self._room(job.gpu_type, cpus, memory_gb)
        if room >= least:
            return None
        short_of_cpus = self._room(job.gpu_type, cpus, 0.0) < self._room(job.gpu_type, 0.0, memory_gb)
        field, asked = ("cpus", f"{cpus:g} CPUs") if short_of_cpus else ("memory_gb", f"{memory_gb:g} GB")
        what = f"asks for {asked} with each of {least} GPUs; the nodes have room for {room} such GPUs"
        return Lack(what, ", ask for less", field)

    def _servers(self, count: int, cpus: float, memory_gb: float, server: Demand) -> Lack | None:
        """See that there is room for a parameter server beside each worker, somewhere."""
        nodes = self._nodes[""]
        for has, each, worker, unit in (
            ([node.cpus for node in nodes], server.cpus, cpus, "CPUs"),
            ([node.memory_gb for node in nodes], server.memory_gb, memory_gb, "GB"),
        ):
            if each > max(has) + PART or count * (each + worker) > sum(has) + PART:
                what = f"needs {count} parameter servers of {each:g} {unit} each"
                return Lack(f"{what}; the nodes have no room for them", ", ask for less", "profile.server")
        return None

    def _room(self, gpu_type: str, cpus: float, memory_gb: float) -> int:
        key = (gpu_type, cpus, memory_gb)
        if key not in self._workers:
            self._workers[key] = sum(_workers_on(node, cpus, memory_gb) for node in self._nodes[gpu_type])
        return self._workers[key]


def _quota(job: Job, tenant: Tenant) -> Lack | None:
    """See that a job needs no more than its tenant may have."""
    if tenant.limit is None or job.least_gpus <= tenant.limit:
        return None
    what = f"needs {job.least_gpus} GPUs; tenant '{tenant.name}' may have {tenant.limit}"
    return Lack(what, ", ask for at most that", "gpus" if job.min_gpus is None else "min_gpus")


def _workers_on(node: Node, cpus: float, memory_gb: float) -> int:
    by_cpu = node.cpus / cpus + PART if cpus else node.gpus
    by_memory = node.memory_gb / memory_gb + PART if memory_gb else node.gpus
    return int(min(node.gpus, by_cpu, by_memory))  # next to nothing of a node fits endlessly often
