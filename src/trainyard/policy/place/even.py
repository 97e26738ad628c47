"""Place stage: evenly over the fewest nodes (Optimus, EuroSys'18).

With the same number of workers and servers on every node no link carries more than another. Nodes with the
most room come first. A gang that cannot be split evenly over any number of nodes is packed.
"""

from __future__ import annotations

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import NodeTable
from trainyard.model.tolerance import CPUS_GB
from trainyard.policy.place.fit import by_type, worker_shares
from trainyard.policy.place.pack import Pack
from trainyard.policy.place.servers import with_servers
from trainyard.policy.request import Request
from trainyard.policy.stages import Place
from trainyard.state.room import Levels, Room, counts_of


class Even(Place):
    """The same number of workers and servers on each of the fewest nodes."""

    def find(self, request: Request, free: Room, nodes: NodeTable, seed: int) -> Allocation | None:
        """Place one gang."""
        for usable in by_type(request, free, nodes):
            shares = _even(request, usable, free, nodes)
            if shares is not None:
                return Allocation(tuple(shares))
        return Pack().find(request, free, nodes, seed)


def _even(request: Request, usable: Levels, free: Room, nodes: NodeTable) -> list[Share] | None:
    """Split over the fewest of the nodes with most room such that everything fits where its workers are."""
    # Sums of equal shares differ by rounding: that must not decide.
    room = sorted(
        counts_of(usable).items(), key=lambda part: (-part[1], -round(free.cpus[part[0]] / CPUS_GB), part[0])
    )
    if not room:
        return None
    for count in range(-(-request.gpus // room[0][1]), min(len(room), request.gpus) + 1):
        each, more = divmod(request.gpus, count)
        parts = [(i, each + (at < more)) for at, (i, _) in enumerate(room[:count])]
        if any(gpus > has for (_, gpus), (_, has) in zip(parts, room, strict=False)):
            continue
        workers = worker_shares(request, parts, nodes)
        shares = with_servers(request, workers, free, nodes) if request.servers else workers
        if shares is not None and len(shares) == count:
            return shares
    return None
