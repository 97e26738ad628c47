"""Size stage: every job gets exactly the GPUs it asked for, or waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from trainyard.model.arrays import Ints
from trainyard.model.job import Job
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot


class Fixed(Size):
    """Whole gangs of the requested size."""

    whole_gangs: ClassVar[bool] = True

    def needs(self, job: Job) -> int:
        """Return what the job asks for."""
        return job.gpus

    def smaller(self, job: Job, gpus: int) -> Iterator[int]:
        """Nothing else will do."""
        return iter(())

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return what each job asked for."""
        asked = snapshot.table.column(Column.GPUS)[ranked]
        return Chosen(Shapes(asked.astype(np.int64)))
