"""Size stage: every job gets exactly the GPUs it asked for, or waits."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.model.arrays import Ints
from trainyard.model.job import Job
from trainyard.policy.stages import Size, Sizes
from trainyard.state.snapshot import Snapshot


class Fixed(Size):
    """Whole gangs of the requested size."""

    def smaller(self, job: Job, gpus: int) -> Iterator[int]:
        """Nothing else will do."""
        return iter(())

    def sizes(self, snapshot: Snapshot, ranked: Ints) -> Sizes | None:
        """Return None: as requested."""
        return None
