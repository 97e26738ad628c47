"""Reservations of a cluster file: nodes that are kept for a tenant, or for nobody, for some time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainyard.errors import InputError, did_you_mean
from trainyard.files.checking import check
from trainyard.files.position import Position
from trainyard.model.cluster import Node
from trainyard.model.reservation import Reservation
from trainyard.model.reserving import settled

if TYPE_CHECKING:
    from trainyard.files.reservation_schema import ReservationEntry


def read_reservations(
    entries: Sequence[Mapping[str, Any]], nodes: Sequence[Node], place: Position
) -> tuple[Reservation, ...]:
    """Read and check all reservations of a cluster with these nodes."""
    if not entries:
        return ()
    from trainyard.files.reservation_schema import RESERVATION

    wishes: list[Reservation] = []
    for i, entry in enumerate(entries):
        here = place.at(i)
        given = check(RESERVATION, entry, here)
        _check(given, nodes, here)
        name = given.get("name", f"r{i + 1}")
        if any(wish.name == name for wish in wishes):
            raise here.error(f"the name {name!r} is given twice; give each its own", "name")
        named = tuple(dict.fromkeys(given.get("nodes", ())))
        asked = given.get("gpus", 0), given.get("gpu_type", "")
        wishes.append(
            Reservation(name, given["from_s"], given["to_s"], named, given.get("tenant", ""), *asked)
        )
    _check_room(wishes, nodes, place)
    return tuple(wishes)


def _check(given: ReservationEntry, nodes: Sequence[Node], place: Position) -> None:
    """Refuse one that reserves nothing, or what is not there."""
    if ("nodes" in given) == ("gpus" in given):
        twice = "are both given" if "nodes" in given else "are both missing"
        raise place.error(f"'nodes' and 'gpus' {twice}; give one of them")
    if "gpu_type" in given and "nodes" in given:
        raise place.error("it goes with 'gpus'; leave it out, as the nodes are named", "gpu_type")
    if not given["from_s"] < given["to_s"]:
        what = f"{given['to_s']:g} is not after from_s; it must be more than {given['from_s']:g}"
        raise place.error(what, "to_s")
    known = {node.node_id for node in nodes}
    for i, node in enumerate(given.get("nodes", ())):
        if node not in known:
            raise place.error(f"unknown node '{node}'{did_you_mean(node, known)}", "nodes", i)
    types, gpu_type = {node.gpu_type for node in nodes}, given.get("gpu_type", "")
    if gpu_type and gpu_type not in types:
        raise place.error(f"no node has GPUs of type '{gpu_type}'{did_you_mean(gpu_type, types)}", "gpu_type")
    there = sum(node.gpus for node in nodes if gpu_type in ("", node.gpu_type))
    if given.get("gpus", 0) > there:
        raise place.error(f"{given['gpus']} is too large; there are {there}, reserve at most these", "gpus")


def _check_room(wishes: Sequence[Reservation], nodes: Sequence[Node], place: Position) -> None:
    """Refuse the first one that wants what others have at that time; those that name nodes go first."""
    made: list[Reservation] = []
    for i in sorted(range(len(wishes)), key=lambda i: wishes[i].gpus > 0):
        try:
            made.append(settled(wishes[i], nodes, made))
        except InputError as error:
            field = "gpus" if wishes[i].gpus else "nodes"
            raise place.error(f"{error}; take another time, or other nodes", i, field) from None


def reservation_record(reservation: Reservation, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a reservation as data for a file; `names` are those that nodes have there."""
    r = reservation
    wanted: dict[str, Any] = {"nodes": [names[node] for node in r.nodes]} if r.nodes else {"gpus": r.gpus}
    if not r.nodes and r.gpu_type:
        wanted["gpu_type"] = r.gpu_type
    tenant = {"tenant": r.tenant} if r.tenant else {}
    return {"name": r.name, **wanted, "from_s": r.from_s, "to_s": r.to_s, **tenant}
