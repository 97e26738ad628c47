"""The market of one decision: the jobs of a snapshot that take part, and all that is known of them."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import SAMPLES
from trainyard.policy.types.market.costs import Costs
from trainyard.policy.types.market.fairness import equal_whole_share_s
from trainyard.policy.types.market.menus import Lists, Menu, shared_menu
from trainyard.policy.types.market.prices import bound_at
from trainyard.policy.types.market.profiled import Paces, profiled
from trainyard.policy.types.market.rings import Rings
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column


class Stall:
    """The market of one decision: the jobs that take part and all that is known of them."""

    def __init__(self, snapshot: Snapshot, rows: Ints, held: Ints, capacity: Ints) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self.held = held
        self.capacity = capacity
        self.jobs = [snapshot.table.jobs[row] for row in rows.tolist()]
        self.left: Floats = np.maximum(snapshot.remaining_samples()[rows], SAMPLES)
        self.restart_s: Floats = np.array([snapshot.restart_cost(job) for job in self.jobs])
        self.elapsed_s: Floats = snapshot.now_s - snapshot.table.column(C.ARRIVAL)[rows]
        own = snapshot.table.column(C.TYPE)[rows].astype(np.int64)
        self.times = profiled(snapshot.speed, self.jobs, own, capacity, self.left)
        self.one_worker_s: Floats = self._one_worker_s()

    def _one_worker_s(self) -> Floats:
        """Seconds of work left for one worker of the best type, if it were alone."""
        best = np.full(len(self.rows), np.inf)
        least = np.array([job.least_gpus for job in self.jobs])
        every_job = np.arange(len(self.rows))
        for t in np.flatnonzero(self.capacity).tolist():
            configs = np.zeros_like(self.held)
            configs[:, t] = least
            best = np.minimum(best, self.times.seconds(every_job, configs) * least)
        # Jobs whose least is more than any type has: as if they had what they asked for.
        return np.where(
            np.isfinite(best), best, self.left / self.snapshot.table.column(C.REFERENCE_RATE)[self.rows]
        )

    def held_s(self) -> Floats:
        """Seconds left with what each job holds, where it is; infinite for those that hold nothing."""
        took = np.full(len(self.rows), np.inf)
        for j in np.flatnonzero(self.held.any(axis=1)).tolist():
            job = self.jobs[j]
            rate = self.snapshot.speed.rate(job, self.snapshot.target[job.job_id])
            took[j] = self.left[j] / rate if rate > 0 else np.inf
        return took

    def fair_s(self) -> Floats:
        """Seconds from arrival to end with an equal share among the jobs that it met."""
        sharers = np.maximum(self.snapshot.contention()[self.rows], 1.0)
        whole = equal_whole_share_s(self.times, np.arange(len(self.rows)), self.capacity, sharers)
        whole = np.where(np.isfinite(whole), whole, self.one_worker_s)
        done: Floats = whole * self.snapshot.table.column(C.TOTAL)[self.rows] / self.left
        return done

    def lists(self, costs: Costs, complete: bool = False) -> Lists:
        """What each job may choose from; complete where that is not too much."""
        menus = []
        for jobs, kind in self._groups():
            offers = kind.every if complete else None
            menus.append(self._menu(costs, jobs, kind.menu if offers is None else offers))
        return Lists(costs, menus)

    def bound(self, costs: Costs, prices: Floats) -> tuple[float, bool]:
        """What any assignment costs at least, and whether that holds for those off the lists too."""
        bound = bound_at(costs, self.lists(costs, complete=True).cheapest(prices), prices)
        return bound, all(kind.every is not None for kind in self.times.kinds)

    def least(self, costs: Costs) -> list[Menu]:
        """The fewest workers that each job can run with: of every type, or of several if none has enough."""
        menus = []
        for jobs, kind in self._groups():
            rows = np.diag(np.minimum(kind.room, kind.job.least_gpus))
            rows = rows[rows.sum(axis=1) == kind.job.least_gpus]
            menus.append(shared_menu(costs, jobs, rows if len(rows) else kind.least_mixes()))
        return menus

    def _groups(self) -> list[tuple[Ints, Paces]]:
        """Jobs of the same kind."""
        return [(np.flatnonzero(self.times.kind_of == k), kind) for k, kind in enumerate(self.times.kinds)]

    def _menu(self, costs: Costs, jobs: Ints, offers: tuple[Ints, Floats]) -> Menu:
        configs, pace = offers
        seconds = self.left[jobs][:, None] * pace + costs.restart[jobs][:, None]
        return Menu(jobs, configs[None], costs.value(jobs, seconds))

    def rings(self) -> Rings:
        """The jobs by the paper's formula: exact on the type where each is fastest, nearly so elsewhere."""
        most = max(kind.most for kind in self.times.kinds)
        types = len(self.capacity)
        rho, extra = np.zeros((len(self.rows), types)), np.full((len(self.rows), most + 1), np.inf)
        n = np.arange(1, most + 1)
        for here, kind in self._groups():
            rho[here], curve = kind.ring(n)
            extra[here, 1:] = self.left[here][:, None] * curve
        return Rings(rho, self.left, extra)
