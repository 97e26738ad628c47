"""Parameter servers: workers push gradients to p servers and pull parameters back (SMD, equations 4 and 5).

Each server holds g/p of the model and shares its bandwidth B among the workers that talk to it at the same
time:

    one way = alpha (g/p) / (B/w)        alpha = 1 when synchronous, `async_share` when asynchronous

A step carries it twice, push and pull, and lasts beta1 w + beta2 p longer for managing workers and servers. A
job that holds no server has one beside its first worker: p counts as one.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.profile import Sync


def one_way_s(sync: Sync, gradient_mb: float, workers: Ints, servers: Ints, bandwidth_gbps: Floats) -> Floats:
    """Seconds to push the gradients of one step, which is also the time to pull the parameters."""
    share = sync.async_share if sync.mode == "async" else 1.0
    gigabits = share * gradient_mb * 8e-3
    return (gigabits / at_least_one(servers)) / (bandwidth_gbps / workers)


def overhead_s(sync: Sync, workers: Ints, servers: Ints) -> Floats:
    """Seconds that a step lasts longer for managing its workers and servers."""
    managed = at_least_one(servers) if sync.kind == "ps" else servers
    return sync.worker_overhead_s * workers + sync.server_overhead_s * managed


def at_least_one(servers: Ints) -> Ints:
    """Servers, counting none as one."""
    return np.maximum(servers, 1)
