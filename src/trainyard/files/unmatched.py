"""Names in files that match nothing: most likely somebody misspelt them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from trainyard.errors import did_you_mean
from trainyard.files.job_reading import MOST_NAMES, Note
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job


def tell_unmatched(
    note: Note | None, cluster: Cluster, jobs: Iterable[Job], cluster_file: str, jobs_file: str
) -> None:
    """Tell of tenants that are not listed, reservations for tenants without jobs, GPU types without nodes."""
    if note is None:
        return
    types = {node.gpu_type for node in cluster.nodes}
    for name in cluster.gpu_types.keys() - types:
        note(f"{cluster_file}: no node has GPUs of type '{name}'{_near(name, types)}")
    jobs_of = Counter(job.tenant for job in jobs if job.tenant)
    for reservation in cluster.reservations:
        tenant = reservation.tenant
        if tenant and tenant not in cluster.tenants and tenant not in jobs_of:
            known = cluster.tenants.keys() | jobs_of
            what = (
                f"{cluster_file}: reservation '{reservation.name}' is for tenant '{tenant}', which has no job"
            )
            note(what + _near(tenant, known))
    unlisted = {name: n for name, n in sorted(jobs_of.items()) if name not in cluster.tenants}
    if cluster.tenants and unlisted:
        rule = "tenants that the cluster does not list have no guarantee and no limit"
        note(f"{jobs_file}: {rule}: {_listed(unlisted, cluster.tenants)}")


def _listed(unlisted: Mapping[str, int], known: Iterable[str]) -> str:
    """Name the tenants that are not listed, with their jobs."""
    names = [f"'{name}' ({n} job{'s' * (n != 1)}{_near(name, known)})" for name, n in unlisted.items()]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _near(name: str, known: Iterable[str]) -> str:
    """Ask whether a known name is meant that is much like it; nothing if there is none."""
    hint = did_you_mean(name, known)
    return hint if "did you mean" in hint else ""
