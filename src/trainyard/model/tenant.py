"""Tenants: teams that share a cluster, what each is promised, and what it may have at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenant:
    """One team; a tenant that a cluster does not list is promised nothing and may have everything."""

    name: str
    guaranteed: int = 0  # GPUs that it gets whenever it wants them
    limit: int | None = None  # GPUs that it may have at most; None: all
    weight: float = 1.0  # by which fair share divides its usage
    max_priority: int | None = None  # that its jobs may have; None: any

    @property
    def bound(self) -> bool:
        """Whether its jobs have to be admitted: it is promised something, or may not have everything."""
        return self.guaranteed > 0 or self.limit is not None
