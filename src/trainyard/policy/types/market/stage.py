"""Size stage: the matching market for clusters with several GPU types (Liu et al., TPDS'24).

At every event the whole market is solved again for the work that is left. The optimum of a moment favours
long jobs, which is the wrong way round when more jobs keep coming: `gamma` weights a job by its remaining
time to the power -gamma. A job that would have to restart pays for that in the same sum, so that it moves
only if that pays; and it pays `inertia` times, because the next event may make it move again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Ints, Mask
from trainyard.model.fairness import jain
from trainyard.policy.bounds import within
from trainyard.policy.choose.walk import greedy
from trainyard.policy.stages import Chosen, Shapes
from trainyard.policy.types.by_type import ByType
from trainyard.policy.types.market.category import search_sampled
from trainyard.policy.types.market.costs import Costs
from trainyard.policy.types.market.prices import Assignment, clear, trade
from trainyard.policy.types.market.samples import Samples, sampled_menu
from trainyard.policy.types.market.stall import Stall
from trainyard.state.capacity import held_by_type, up_by_type
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
MOST_GAMMA = 10.0  # beyond that the weights of long jobs are lost in rounding
MOST = 1e6  # of other factors
MOST_SAMPLES = 10_000
LEAST_S = 1.0  # remaining times below this do not make a job any more urgent


class Market(ByType):
    """The market. `fair` caps finish times at this many equal-share times; `beta` below 1 weighs fairness."""

    cuts = True

    def __init__(
        self,
        engine: Literal["prices", "category"] = "prices",
        samples: int | None = None,
        gamma: float = 2.0,
        inertia: float = 10.0,
        fair: float | None = None,
        beta: float = 1.0,
        exact: bool = False,
    ) -> None:
        if not 0 <= gamma <= MOST_GAMMA:
            raise InputError(f"gamma is {gamma:g}; give a number from 0 to {MOST_GAMMA:g}")
        if inertia < 0:
            raise InputError(f"inertia is {inertia:g}; give 0 or more: how many times a restart counts")
        if fair is not None and fair <= 0:
            raise InputError(f"fair is {fair:g}; give a number above 0, such as 1.5")
        if not 0 <= beta <= 1:
            raise InputError(f"beta is {beta:g}; give a number from 0 (fair) to 1 (fast)")
        within("inertia", inertia, 0, MOST)
        if fair is not None:
            within("fair", fair, 1 / MOST, MOST)
        if samples is not None:
            within("samples", samples, 1, MOST_SAMPLES)
        self.engine = engine
        self.samples = samples
        self.gamma = gamma
        self.inertia = inertia
        self.fair = fair
        self.beta = beta
        self.exact = exact

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return workers by type of each ranked row, and the certificate."""
        held = held_by_type(snapshot)
        mix, notes = self._decide(snapshot, ranked, held[ranked], up_by_type(snapshot))
        return Chosen(Shapes(mix.sum(axis=1), by_type=mix), notes)

    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return workers of each ranked row by GPU type."""
        return self._decide(snapshot, ranked, held, capacity)[0]

    def _decide(
        self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints
    ) -> tuple[Ints, Mapping[str, Any]]:
        mix: Ints = np.zeros_like(held)
        admitted = np.flatnonzero(_admitted(snapshot, ranked, capacity))
        if not admitted.size:
            return mix, {}
        stall = Stall(snapshot, ranked[admitted], held[admitted], capacity)
        costs = self._costs(stall)
        found = self._solve(stall, costs)
        # Neither a list nor a sample says anything of what is not on it.
        bound, complete = stall.bound(costs, found.prices)
        found = found._replace(bound=min(bound, found.cost))
        mix[admitted] = found.mix
        return mix, {**_certificate(stall, costs, found), "bound_holds_for": "all" if complete else "listed"}

    def _costs(self, stall: Stall) -> Costs:
        """What this stage minimises."""
        snap, rows, one = stall.snapshot, stall.rows, stall.one_worker_s
        weight = snap.table.column(C.WEIGHT)[rows] * np.maximum(one, LEAST_S) ** -self.gamma
        limit = np.full(len(rows), np.inf)
        if self.fair is not None or self.beta < 1:
            fair_s = stall.fair_s()
            if self.fair is not None:
                limit = np.maximum(self.fair * fair_s - stall.elapsed_s, 0.0)
            # From the sum of weighted times to the sum of times by their fair ones.
            weight = self.beta * weight / weight.mean() + (1.0 - self.beta) * fair_s.mean() / fair_s
        restart = np.where(stall.held.any(axis=1), self.inertia * stall.restart_s, 0.0)
        wait = np.full(len(rows), np.inf)
        return Costs(stall.times, stall.capacity, weight, limit, restart, stall.held, stall.held_s(), wait)

    def _solve(self, stall: Stall, costs: Costs) -> Assignment:
        generator = np.random.default_rng((stall.snapshot.rules.seed, int(stall.snapshot.now_s)))
        types = stall.snapshot.nodes.types
        said = stall.snapshot.said.get("prices", {})  # of the last decision: a good start for this one
        guess = np.array([said[t] for t in types]) if said.keys() == set(types) else None
        if self.engine == "category":
            found = search_sampled(costs, stall.rings(), self.samples or 64, generator)
            return found._replace(prices=clear(costs, stall.lists(costs), guess).prices)
        if self.samples is None:
            return trade(costs, stall.lists(costs, self.exact), guess, exact=self.exact)
        work = np.sqrt(costs.weight * stall.one_worker_s)
        centre = work / work.sum() * stall.capacity.sum()
        most = max(kind.most for kind in stall.times.kinds)
        menu = sampled_menu(costs, centre, self.samples, most, generator)
        return trade(costs, Samples(costs, [menu, *stall.least(costs)]), guess, exact=self.exact)


def _admitted(snapshot: Snapshot, ranked: Ints, capacity: Ints) -> Mask:
    """Who takes part: down the ranking as long as there is a worker for each of the least that they need."""
    least = snapshot.table.column(C.LEAST)[ranked]
    own = snapshot.table.column(C.TYPE)[ranked].astype(np.int64)
    takes: Mask = greedy(least, float(capacity.sum()))
    for t in np.unique(own[own >= 0]).tolist():
        bound = own == t
        takes[bound] &= greedy(least[bound], float(capacity[t]))
    return takes


def _certificate(stall: Stall, costs: Costs, found: Assignment) -> Mapping[str, Any]:
    """What can be said of an assignment: how good it is at least, what a worker is worth, how fair it is."""
    every_job = np.arange(costs.jobs)
    took = stall.times.seconds(every_job, found.mix)
    some = np.isfinite(took)
    ratio = (stall.elapsed_s + took)[some] / stall.fair_s()[some]
    prices = dict(zip(stall.snapshot.nodes.types, found.prices.tolist(), strict=True))
    return {
        "jobs": costs.jobs,
        "cost": found.cost,
        "lower_bound": found.bound,
        "gap": found.gap,
        "prices": prices,
        "jain_index": float(jain(ratio)),
        "worst_finish_time_ratio": float(ratio.max(initial=0.0)),
    }
