"""How a cluster is shared, in words: what each tenant is promised and may have, and what is reserved."""

from __future__ import annotations

from trainyard.model.cluster import Cluster
from trainyard.model.reservation import Reservation
from trainyard.model.tenant import Tenant
from trainyard.report import units

MOST = 20  # of a list


def shared(cluster: Cluster) -> list[tuple[str, str]]:
    """Return tenants and reservations of a cluster as names and values; nothing where it has none."""
    lists = {
        "tenants": [_tenant(tenant) for tenant in cluster.tenants.values()],
        "reservations": [_reservation(reservation) for reservation in cluster.reservations],
    }
    return [(name, _listed(parts)) for name, parts in lists.items() if parts]


def _listed(parts: list[str]) -> str:
    more = [f"and {len(parts) - MOST} more"] if len(parts) > MOST else []
    return "; ".join(parts[:MOST] + more)


def _tenant(tenant: Tenant) -> str:
    said = {
        "guaranteed": tenant.guaranteed or None,
        "limit": tenant.limit,
        "weight": None if tenant.weight == 1 else f"{tenant.weight:g}",
        "priority at most": tenant.max_priority,
    }
    rules = ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)
    return f"{tenant.name}: {rules or 'nothing guaranteed, no limit'}"


def _reservation(reservation: Reservation) -> str:
    r = reservation
    what = ", ".join(r.nodes) if r.nodes else f"{r.gpus} {r.gpu_type} GPUs".replace("  ", " ")
    times = f"from {units.duration(r.from_s)} to {units.duration(r.to_s)}"
    return f"{r.name}: {what} {times} for {f'tenant {r.tenant}' if r.tenant else 'nobody (maintenance)'}"
