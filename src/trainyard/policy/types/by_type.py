"""Size stages that choose GPU types too: how many GPUs of which types, for all jobs at once."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from trainyard.model.arrays import Ints
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.state.capacity import held_by_type, up_by_type
from trainyard.state.snapshot import Snapshot


class ByType(Size):
    """How big, and on which GPU types?"""

    order: ClassVar[str] = "srsf"

    @abstractmethod
    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return GPUs of each ranked row by type, none to wait.

        `held` are the GPUs that each ranked row has now, by type; `capacity` is what the cluster has.
        """

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return the GPUs by type of each ranked row."""
        held = held_by_type(snapshot)
        by_type = self.assign(snapshot, ranked, held[ranked], up_by_type(snapshot))
        return Chosen(Shapes(by_type.sum(axis=1), by_type=by_type))
