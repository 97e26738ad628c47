"""Which nodes does a reservation get?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from trainyard.errors import InputError
from trainyard.model.cluster import Node
from trainyard.model.reservation import Reservation


def all_settled(wishes: Iterable[Reservation], nodes: Sequence[Node]) -> list[Reservation]:
    """Choose nodes for all reservations of a cluster: those that name theirs come first, then in order."""
    wishes, made = list(wishes), dict[str, Reservation]()
    for wish in sorted(wishes, key=lambda wish: wish.gpus > 0):
        made[wish.name] = settled(wish, nodes, made.values())
    return [made[wish.name] for wish in wishes]


def settled(reservation: Reservation, nodes: Iterable[Node], others: Collection[Reservation]) -> Reservation:
    """Choose whole nodes for a reservation that asks for GPUs: the smallest that do, the first of equals.

    InputError if there are not enough, or if a named node is kept for somebody else at that time.
    """
    busy = {node for other in others if other.overlaps(reservation) for node in other.nodes}
    if not reservation.gpus:
        taken = sorted(busy.intersection(reservation.nodes))
        if taken:
            raise InputError(
                f"reservation {reservation.name}: node {taken[0]} is reserved already at that time"
            )
        return reservation
    fitting = [
        n for n in nodes if n.gpus and reservation.gpu_type in ("", n.gpu_type) and n.node_id not in busy
    ]
    chosen, left = list[str](), reservation.gpus
    while left > 0:
        if not fitting:
            what = f"{reservation.gpus} GPUs" + (
                f" of type {reservation.gpu_type}" if reservation.gpu_type else ""
            )
            raise InputError(f"reservation {reservation.name}: there are not {what} to reserve at that time")
        enough = [n for n in fitting if n.gpus >= left]
        best = min(enough, key=lambda n: n.gpus) if enough else max(fitting, key=lambda n: n.gpus)
        fitting.remove(best)
        chosen.append(best.node_id)
        left -= best.gpus
    return replace(reservation, nodes=tuple(chosen))
