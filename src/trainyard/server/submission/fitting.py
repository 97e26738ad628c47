"""A submission against what there is: nodes, models, tenants, jobs that it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainyard.errors import did_you_mean
from trainyard.files.job_check import JobCheck
from trainyard.files.position import Position, dotted
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Sync
from trainyard.model.tenant import Tenant
from trainyard.model.terms import Terms
from trainyard.server.faults import FieldError
from trainyard.server.submission.reading import Wish

OF_JOBS = {"gpu_type": "gpu_types", "min_gpus": "gpus.min"}  # names of fields, there and in submissions


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a submission has to fit to; nothing here changes."""

    nodes: Sequence[Mapping[str, Any]]  # as users see them
    models: Mapping[str, Profile] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    most_grace_s: float = 600.0


class _Place(Position):
    """Where a complaint of the checks of jobs files is about a field of a submission."""

    def error(self, what: str, *keys: str | int) -> FieldError:
        """Make an error about a field."""
        name = dotted((*self.path, *keys))
        return FieldError(OF_JOBS.get(name, name), what)


def check_fits(wish: Wish, around: Surroundings) -> None:
    """Refuse what could never run here; FieldError says why."""
    if wish.model and wish.model not in around.models:
        hint = did_you_mean(wish.model, around.models)
        raise FieldError("model", f"unknown model '{wish.model}'{hint} (up --profiles FILE brings others)")
    _check_tenant(wish, around.tenants)
    _check_gpus(wish, around)
    _check_servers(wish)
    if wish.grace_s is not None and wish.grace_s > around.most_grace_s:
        most = f"{around.most_grace_s:g}"
        raise FieldError(
            "grace_s", f"{wish.grace_s:g} is more than {most}, the most that this controller gives"
        )
    nodes = tuple(Node(n["node"], n["gpu_type"], n["gpus"], n["cpus"], n["memory_gb"]) for n in around.nodes)
    JobCheck(Cluster("", nodes))(make_job(wish, wish.name, 0.0, around), _Place())


def _check_tenant(wish: Wish, tenants: Mapping[str, Tenant]) -> None:
    tenant = tenants.get(wish.tenant)
    if tenant is None:  # it is promised nothing and may have everything
        return
    if tenant.max_priority is not None and wish.priority > tenant.max_priority:
        most = f"jobs of tenant '{tenant.name}' may have {tenant.max_priority} at most"
        raise FieldError("priority", f"{wish.priority}, but {most}")
    if tenant.limit is not None and wish.gpus.least > tenant.limit:
        raise FieldError(
            _gpus_field(wish),
            f"{wish.gpus.least}, but tenant '{tenant.name}' may have {tenant.limit} GPUs at most",
        )


def _check_gpus(wish: Wish, around: Surroundings) -> None:
    """Refuse a job that is too big for ever."""
    counts: dict[str, int] = {}
    for node in around.nodes:
        counts[node["gpu_type"]] = counts.get(node["gpu_type"], 0) + node["gpus"]
    wanted = wish.gpu_types[0] if wish.gpu_types else ""
    if wanted and wanted not in counts:
        raise FieldError("gpu_types", f"no node has GPUs of type '{wanted}'{did_you_mean(wanted, counts)}")
    room = counts[wanted] if wanted else sum(counts.values())
    if wish.gpus.least > room:
        of_type = f" ({counts[wanted]} of type {wanted})" if wanted else ""
        has = f"the cluster has {sum(counts.values())} GPUs{of_type}"
        raise FieldError(_gpus_field(wish), f"{wish.gpus.least}, but {has}; trainyard nodes shows them")


def _check_servers(wish: Wish) -> None:
    """Refuse a number of servers that no policy would give."""
    if wish.servers and wish.servers != wish.gpus.least:
        each = f"every worker has one parameter server: give {wish.gpus.least}, or leave this out"
        raise FieldError("servers", f"{wish.servers}, but {each}")


def _profile(wish: Wish, around: Surroundings) -> Profile | None:
    """What is known of the job's speed; with servers or without is as the user says."""
    profile = around.models.get(wish.model)
    serves = profile is not None and profile.serves
    if wish.servers is None or bool(wish.servers) == serves:
        return profile
    known = profile or Profile()
    return replace(known, sync=replace(known.sync or Sync(), kind="ps" if wish.servers else "ring"))


def _gpus_field(wish: Wish) -> str:
    return "gpus" if wish.gpus.one else "gpus.min"


def make_job(wish: Wish, job_id: str, now_s: float, around: Surroundings) -> Job:
    """Return the job that the core knows."""
    least, most, sizes = wish.gpus
    return Job(
        job_id,
        now_s,
        least,
        samples=wish.samples,
        model=wish.model,
        profile=_profile(wish, around),
        min_gpus=None if least == most else least,
        max_gpus=None if least == most else most,
        tenant=wish.tenant,
        deadline_s=wish.deadline_s,
        gpu_type=wish.gpu_types[0] if wish.gpu_types else "",
        cpus=wish.cpus,
        memory_gb=wish.memory_gb,
        user=wish.user,
        priority=wish.priority,
        sizes=sizes,
        preemptible=wish.preemptible,
        terms=Terms(
            wish.retries,
            wish.transient_exit_codes,
            wish.time_limit_s,
            wish.max_wait_s,
            dict.fromkeys(wish.after, "ok"),
        ),
    )
