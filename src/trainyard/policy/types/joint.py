"""Stages that decide size and place together: how many workers of which GPU types, for all jobs at once."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Ints
from trainyard.model.cluster import NodeTable
from trainyard.policy.place.fit import find_mix
from trainyard.policy.stages import Place, Request, Size, Sizes
from trainyard.state.capacity import held_mix, up_by_type
from trainyard.state.room import Room
from trainyard.state.snapshot import Snapshot


class Joint(Size, Place):
    """How big, and on which GPU types? The workers of each type then go on the fewest nodes."""

    order: ClassVar[str] = "srsf"  # the order if the policy names none

    @abstractmethod
    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return workers of each ranked row by GPU type, none to wait.

        `held` are the workers that each ranked row has now, by type; `capacity` is what the cluster has.
        """

    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes:
        """Return workers by type of each ranked row."""
        held = held_mix(snapshot)
        mix = self.assign(snapshot, ranked, held[ranked], up_by_type(snapshot))
        return Sizes(mix.sum(axis=1), mix=mix)

    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Put the workers of each type on the fewest nodes."""
        return find_mix(request, free, nodes)
