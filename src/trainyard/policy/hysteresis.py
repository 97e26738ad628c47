"""Whether resizing pays: a job that changes size stops and starts again, which costs time."""

from __future__ import annotations

import numpy as np

from trainyard.model.cluster import Floats, Ints
from trainyard.policy.predict import Beliefs
from trainyard.policy.select import Mask
from trainyard.policy.snapshot import Column

C = Column


def settle(
    beliefs: Beliefs, ranked: Ints, gpus: Ints, trials: frozenset[int], servers: Ints | None = None
) -> None:
    """Put running jobs back to what they hold where a change does not pay. Trials go on regardless."""
    snapshot = beliefs.snapshot
    held, has = _held(beliefs, ranked, servers)
    loss_s, restart_s = np.zeros(ranked.size), np.zeros(ranked.size)
    moves: Mask = (held > 0) & (gpus > 0) & (held != gpus)
    if servers is not None:
        moves |= (held > 0) & (gpus > 0) & (has != servers)
    for j in np.flatnonzero(moves).tolist():
        row = int(ranked[j])
        restart_s[j] = snapshot.restart_cost(snapshot.table.jobs[row])
        if servers is None:
            before, after = beliefs.curve(row)[[held[j], gpus[j]]].tolist()
        else:
            before = beliefs.speed(row, int(held[j]), int(has[j]))
            after = beliefs.speed(row, int(gpus[j]), int(servers[j]))
        if j in trials:
            loss_s[j] = -np.inf
        elif before > 0 and after > 0:
            loss_s[j] = beliefs.left[row] * (1.0 / after - 1.0 / before)
    stay = kept(moves, held, gpus, loss_s + restart_s, snapshot.up_gpus)
    gpus[stay] = held[stay]
    if servers is not None:
        servers[stay] = has[stay]


def _held(beliefs: Beliefs, ranked: Ints, servers: Ints | None) -> tuple[Ints, Ints]:
    """GPUs, and servers where their number matters, that each job holds."""
    snapshot = beliefs.snapshot
    held: Ints = snapshot.table.column(C.HELD)[ranked].astype(np.int64)
    has = np.zeros_like(held)
    if servers is not None:
        for j in np.flatnonzero(servers).tolist():
            allocation = snapshot.running.get(snapshot.table.jobs[ranked[j]].job_id)
            has[j] = allocation.servers if allocation is not None else 0
    return held, has


def kept(moves: Mask, held: Ints, target: Ints, cost_s: Floats, gpus: int) -> Mask:
    """Return which of the jobs that should move rather stay as they are.

    `cost_s` is how much later a job ends with the target than with what it holds, below zero if earlier, the
    restart included. `gpus` is the capacity of the cluster.
    """
    stay: Mask = moves & (target >= held) & (cost_s >= 0)
    left = gpus - int(np.where(stay, held, target).sum())
    shrinks = np.flatnonzero(moves & (target < held) & (cost_s > 0))
    per_gpu = cost_s[shrinks] / (held - target)[shrinks]
    for i in shrinks[np.argsort(-per_gpu, kind="stable")].tolist():
        if held[i] - target[i] <= left:
            left -= int(held[i] - target[i])
            stay[i] = True
    if not np.any((held == 0) & (target > 0)) and cost_s[moves & ~stay].sum() >= 0:
        return moves  # nobody starts, and together they would lose more than they win
    return stay
