"""What one job asks a place stage for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainyard.model.allocation import Allocation
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.model.profile import Demand
from trainyard.state.room import Room


class Request(NamedTuple):
    """What one job needs from a place stage."""

    job: Job
    gpus: int
    gpu_type: int = -1  # index of the only GPU type it may use, or -1
    cpus_per_gpu: float | None = None  # None: the node's GPU-proportional share
    memory_per_gpu: float | None = None
    servers: int = 0
    server: Demand | None = None  # what each server holds; None: it lives on its workers' share
    by_type: tuple[int, ...] | None = None  # its GPUs by type, if that is settled

    def of_each_type(self) -> Iterator[Request]:
        """Yield a request for the GPUs of each type alone; servers go with them in proportion."""
        assert self.by_type is not None
        upto, gpus = 0, 0
        for gpu_type, count in enumerate(self.by_type):
            if count:
                gpus += count
                servers = round(self.servers * gpus / self.gpus) - upto
                upto += servers
                yield self._replace(gpus=count, gpu_type=gpu_type, servers=servers, by_type=None)

    def take(self, allocation: Allocation, free: Room, nodes: NodeTable) -> None:
        """Take what was found for it out of what is free."""
        if self.cpus_per_gpu is not None or self.memory_per_gpu is not None:
            free.plain = False  # from now on a free GPU does not mean that its share is free
        free.take(nodes, allocation)
