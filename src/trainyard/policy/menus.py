"""Menus: for each kind of job a table of the shapes that a size stage considers, and how fast each is.

All jobs of a kind have the same menu. Menus are made where they are first asked for, and kept as long as
there are jobs of that kind and the cluster has the same GPUs. What a stage learns to consider later, such as
layouts, is another column here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.kind import Kind
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot


class Menu(NamedTuple):
    """Shapes of one kind of job, a row each."""

    by_type: Ints  # (shapes, types): GPUs
    speed: Floats  # samples/s


class Menus(NamedTuple):
    """The menus of some jobs."""

    kinds: list[Menu]
    of: Ints  # which of them each job has

    def each(self) -> list[Menu]:
        """The menu of each job."""
        return [self.kinds[k] for k in self.of.tolist()]


Maker = Callable[[Snapshot, Record, Ints], Menu]  # of one job, within the GPUs of each type


def menus_of(snapshot: Snapshot, rows: Ints, capacity: Ints, make: Maker) -> Menus:
    """Return the menus of these rows of the job table, made by `make` where they are not known yet."""
    there = capacity.tobytes()
    kept_for, kept = snapshot.caches.get(make, (None, {}))
    known: dict[Kind, Menu] = kept if kept_for == there else {}
    place: dict[Kind, int] = {}
    menus: list[Menu] = []
    of: Ints = np.empty(rows.size, dtype=np.int64)
    for j, row in enumerate(rows.tolist()):
        record = snapshot.table.records[row]
        kind = record.job.kind
        at = place.get(kind)
        if at is None:
            at = place[kind] = len(menus)
            menus.append(known.get(kind) or make(snapshot, record, capacity))
        of[j] = at
    snapshot.caches[make] = there, dict(zip(place, menus, strict=True))
    return Menus(menus, of)
