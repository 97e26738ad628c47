"""Size stage: Hadar (Sultana et al., IPDPS'24), task-level mixes of GPU types at prices that rise with use.

From the paper: jobs are served one after the other; the workers of a gang may sit on different GPU types; the
price of a type grows exponentially with the part of it that is in use, between the least and the largest
utility that a unit of it can bring,

    price = least x (largest / least) ^ (GPUs in use / GPUs)

a job takes the mix with the largest payoff, utility minus what its GPUs cost, and runs if that is above zero;
the utility is the work done per second from arrival to end; time goes in rounds.

Ours, where the published abstract leaves it open: utility is relative to the job's best mix (its run time
there / its completion time), so that models can be compared; prices are per GPU-second, for as long as the
job will run; the least price is a quarter of the least utility per GPU-second; changing its workers costs a
job its restart. A job that waits although GPUs are left takes the best mix of these at any price. All
mixes are tried if there are few enough, else those of at most two types: at given prices more hardly help.
"""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.job import Job
from trainyard.model.tolerance import SECONDS
from trainyard.policy.menus import Menu, menus_of
from trainyard.policy.types.options import room_for
from trainyard.policy.types.rounds import Rounds
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

C = Column
MANY = 2000  # mixes of one gang
LEAST_PART = 0.25  # of the least utility per GPU-second: the least price


class Buyer(NamedTuple):
    """One job that looks for GPUs."""

    menu: Menu
    left: float  # samples
    lived_s: float
    ideal_s: float  # the whole run with its best mix
    restart_s: Floats  # lost with each mix

    def offers(self) -> tuple[Floats, Floats]:
        """Return the utility of each mix, and the seconds for which it is held."""
        run_s = self.restart_s + self.left / self.menu.speed
        utility: Floats = self.ideal_s / np.maximum(self.lived_s + run_s, SECONDS)
        return utility, run_s


class Hadar(Rounds):
    """Each job in turn buys the mix of GPU types that pays most."""

    order: ClassVar[str] = "srtf"

    def __init__(self, round_s: float = 360.0) -> None:
        super().__init__(round_s)

    def needs(self, job: Job) -> int:
        """Return the gang that the job asks for."""
        return job.gpus

    def choose(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints, stay: Mask) -> Ints:
        """Return what each job buys."""
        mix: Ints = np.where(stay[:, None], held, 0)
        buyers = buyers_of(snapshot, ranked, held, capacity, stay)
        low, high = price_range(buyers, capacity.size)
        for at_any_price in (False, True):
            for j, buyer in buyers.items():
                left = capacity - mix.sum(axis=0)
                if not left.any():
                    return mix
                if not mix[j].any():
                    price = prices(low, high, left, capacity)
                    bought = best_mix(buyer, price, left, at_any_price)
                    if bought is not None:
                        mix[j] = bought
        return mix


def prices(low: Floats, high: Floats, left: Ints, capacity: Ints) -> Floats:
    """Price of a GPU-second of each type, given what is left of it."""
    price: Floats = low * (high / low) ** (1.0 - left / np.maximum(capacity, 1))
    return price


def best_mix(buyer: Buyer, price: Floats, left: Ints, at_any_price: bool) -> Ints | None:
    """Return the mix with the largest payoff among those that fit, if there is one that pays."""
    fits = np.flatnonzero((buyer.menu.by_type <= left).all(axis=1))
    if not fits.size:
        return None
    utility, run_s = buyer.offers()
    payoff = utility[fits] - run_s[fits] * (buyer.menu.by_type[fits] @ price)
    best = int(payoff.argmax())
    if payoff[best] <= 0 and not at_any_price:
        return None
    bought: Ints = buyer.menu.by_type[fits[best]]
    return bought


def price_range(buyers: dict[int, Buyer], types: int) -> tuple[Floats, Floats]:
    """Return the least and the largest price of each type: utility per GPU-second, over all jobs."""
    low, high = np.full(types, np.inf), np.zeros(types)
    for buyer in buyers.values():
        utility, run_s = buyer.offers()
        each = utility / (np.maximum(run_s, SECONDS) * buyer.menu.by_type.sum(axis=1))
        for t in range(types):
            on_type = each[buyer.menu.by_type[:, t] > 0]
            if on_type.size:
                low[t] = min(low[t], LEAST_PART * float(on_type.min()))
                high[t] = max(high[t], float(on_type.max()))
    unused = high <= 0
    return np.where(unused, 1.0, low), np.where(unused, 1.0, high)


def buyers_of(snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints, stay: Mask) -> dict[int, Buyer]:
    """Return position in the ranking -> buyer, of all jobs that could run and do not stay as they are."""
    table, left = snapshot.table, snapshot.remaining_samples()
    buyers = {}
    moving = np.flatnonzero(~stay)
    menus = menus_of(snapshot, ranked[moving], capacity, mixes).each()
    for j, menu in zip(moving.tolist(), menus, strict=True):
        row = int(ranked[j])
        record = table.records[row]
        if menu.speed.size:
            ideal_s = record.total / float(menu.speed.max())
            lived_s = snapshot.now_s - record.arrival_s
            other = (menu.by_type != held[j]).any(axis=1) & bool(held[j].any())
            restart_s = other * snapshot.restart_cost(record.job)
            buyers[j] = Buyer(menu, float(left[row]), lived_s, ideal_s, restart_s)
    return buyers


def mixes(snapshot: Snapshot, record: Record, capacity: Ints) -> Menu:
    """Return the menu of one job: the ways to put its gang on GPU types."""
    job = record.job
    by_type = all_mixes(job.gpus, room_for(job, record.type_index, snapshot.nodes, capacity))
    if not len(by_type):
        return Menu(by_type, np.zeros(0))
    shapes = snapshot.speed.proportional(by_type, np.full(len(by_type), job.servers))
    speed = snapshot.speed.speeds(job, shapes)
    return Menu(by_type[speed > 0], speed[speed > 0])


def all_mixes(gpus: int, room: Ints) -> Ints:
    """Return every way to divide a gang among types within this room; of many, those of two types."""
    types = room.size
    full = _divide(gpus, room.tolist(), MANY)
    if full is not None:
        return np.array(full, dtype=np.int64).reshape(-1, types)
    found: dict[tuple[int, ...], None] = {}
    for pair in combinations(range(types), 2):
        for mix in _divide(gpus, [int(room[t]) if t in pair else 0 for t in range(types)], None) or ():
            found[mix] = None
    fill: list[int] = []
    for there in room.tolist():  # for gangs that no two types could hold
        fill.append(min(there, gpus - sum(fill)))
    if sum(fill) == gpus:
        found[tuple(fill)] = None
    return np.array(list(found), dtype=np.int64).reshape(-1, types)


def _divide(gpus: int, room: list[int], most: int | None) -> list[tuple[int, ...]] | None:
    """Return all divisions of a gang within room, or None if there are more than `most`."""
    parts: list[tuple[int, ...]] = [()]
    for t, there in enumerate(room):
        after = sum(room[t + 1 :])
        parts = [
            (*part, n)
            for part in parts
            for n in range(max(0, gpus - sum(part) - after), min(there, gpus - sum(part)) + 1)
        ]
        if most is not None and len(parts) > most:
            return None
    return parts
