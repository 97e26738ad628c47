"""Jobs that arrive one by one at a cluster of V100, P100 and K80 nodes.

Models, and with them the speed on each GPU type, are the zoo's. Their work is as in Gavel's traces: on one
V100 four in five take 10^U(1.5, 3) minutes, the others 10^U(3, 4); here a fifth of that. Sizes are asked for
in the proportions of Philly, as Gavel takes them; by and large, jobs with more work ask for more, so that
policies which cannot change sizes are not at a loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.cluster import CPUS_PER_GPU, MEMORY_GB_PER_GPU, Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.speed import SpeedModel
from trainyard.model.zoo import FOR_OLDER_GPUS, ZOO
from trainyard.trace.gavel_times import draw_log_minutes

TYPES = {"V100": 1.0, "P100": 219 / 367, "K80": 51.9 / 367}  # speeds of 32-bit ResNet-50, as in the zoo
NODES_PER_TYPE, GPUS_PER_NODE = 4, 8
SIZES, SHARES = (1, 2, 4, 8), (0.70, 0.10, 0.15, 0.05)
MOST_GPUS = 16
SCALE = 0.2
NOISE = 0.5  # of the decimal logarithm of the work, where it decides the size


@dataclass(frozen=True, slots=True)
class Workload:
    """One random draw."""

    load: float  # work that arrives, by what all GPUs could do on average
    seed: int
    jobs: int = 240
    network_gbps: float = 10.0


def mixed_cluster(network_gbps: float = 10.0) -> Cluster:
    """Return as many nodes of each type."""
    nodes = tuple(
        Node(
            f"{name}-{i}",
            name,
            GPUS_PER_NODE,
            CPUS_PER_GPU * GPUS_PER_NODE,
            MEMORY_GB_PER_GPU * GPUS_PER_NODE,
            network_gbps,
        )
        for name in TYPES
        for i in range(NODES_PER_TYPE)
    )
    return Cluster("mixed", nodes, {name: GpuType(name, speed) for name, speed in TYPES.items()})


def mixed_jobs(workload: Workload) -> list[Job]:
    """Draw jobs that may have 1 to MOST_GPUS GPUs."""
    rng, n = np.random.default_rng(workload.seed), workload.jobs
    models = rng.choice(len(FOR_OLDER_GPUS), n)
    digits = draw_log_minutes(n, rng)
    rank = (digits + rng.normal(0.0, NOISE, n)).argsort().argsort()
    gpus = np.array(SIZES)[np.searchsorted(np.cumsum(SHARES), (rank + 0.5) / n)]
    work_s = 60 * SCALE * 10**digits
    cluster = mixed_cluster(workload.network_gbps)
    speeds = _speeds(SpeedModel(cluster))[models]
    v100s = GPUS_PER_NODE * NODES_PER_TYPE * float((speeds / speeds[:, :1]).mean(axis=0).sum())
    gap_s = float(work_s.mean()) / (workload.load * v100s)
    arrivals = rng.exponential(gap_s, n).cumsum()
    return [
        Job(
            f"job{i:03}",
            float(arrivals[i]),
            int(gpus[i]),
            samples=float(work_s[i] * speeds[i, 0]),
            model=FOR_OLDER_GPUS[models[i]],
            profile=ZOO[FOR_OLDER_GPUS[models[i]]].profile,
            min_gpus=1,
            max_gpus=MOST_GPUS,
        )
        for i in range(n)
    ]


def _speeds(model: SpeedModel) -> Floats:
    """Samples per second of each model on one GPU of each type."""
    shapes = model.proportional(np.eye(len(TYPES), dtype=np.int64))
    return np.array([model.bulk(ZOO[name].profile, shapes) for name in FOR_OLDER_GPUS])
