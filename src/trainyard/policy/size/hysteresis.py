"""Whether resizing pays: a job that changes size stops and starts again, which costs time."""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.tolerance import PART
from trainyard.policy.size.growth import tasks_of
from trainyard.policy.stages import Shapes
from trainyard.state.beliefs import Beliefs
from trainyard.state.capacity import up_capacity
from trainyard.state.jobs import Column

C = Column


def settle(beliefs: Beliefs, ranked: Ints, shapes: Shapes, trials: frozenset[int] = frozenset()) -> Shapes:
    """Return the shapes, but of running jobs what they hold where a change does not pay. Trials go on."""
    snapshot, gpus, servers = beliefs.snapshot, shapes.gpus, shapes.servers
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
    if not moves.any():
        return shapes
    parts = _parts(beliefs, ranked)
    serve = (held, gpus) if servers is None else (has, servers)  # as many as workers, if none are told
    holds, wants = (
        w[:, None] * parts[:, 0] + p[:, None] * parts[:, 1] for w, p in zip((held, gpus), serve, strict=True)
    )
    stay = kept(moves, holds, wants, loss_s + restart_s)
    had = None if servers is None else np.where(stay, has, servers)
    return shapes._replace(gpus=np.where(stay, held, gpus), servers=had)


def _parts(beliefs: Beliefs, ranked: Ints) -> Floats:
    """Parts of the cluster that a worker and a server of each job take."""
    jobs = beliefs.snapshot.table.jobs
    return np.array(tasks_of((jobs[row] for row in ranked.tolist()), up_capacity(beliefs.snapshot)))


def _held(beliefs: Beliefs, ranked: Ints, servers: Ints | None) -> tuple[Ints, Ints]:
    """GPUs, and servers where their number matters, that each job holds."""
    snapshot = beliefs.snapshot
    held: Ints = snapshot.table.column(C.GIVEN)[ranked].astype(np.int64)
    has = np.zeros_like(held)
    if servers is not None:
        for j in np.flatnonzero(servers).tolist():
            allocation = snapshot.target.get(snapshot.table.jobs[ranked[j]].job_id)
            has[j] = allocation.servers if allocation is not None else 0
    return held, has


def kept(moves: Mask, holds: Floats, wants: Floats, cost_s: Floats) -> Mask:
    """Return which of the jobs that should move rather stay as they are.

    `holds` and `wants` are parts of the cluster, a column for each resource. `cost_s` is how much later a job
    ends with what it should get than with what it holds, below zero if earlier, the restart included.
    """
    more = holds - wants  # that staying takes
    takes_more: Mask = more.max(axis=1) > PART
    stay: Mask = moves & ~takes_more & (cost_s >= 0)
    left = 1.0 + PART - np.where(stay[:, None], holds, wants).sum(axis=0)
    shrinks = np.flatnonzero(moves & takes_more & (cost_s > 0))
    per_part = cost_s[shrinks] / more[shrinks].max(axis=1)
    for i in shrinks[np.argsort(-per_part, kind="stable")].tolist():
        if (more[i] <= left).all():
            left -= more[i]
            stay[i] = True
    starts = ~holds.any(axis=1) & wants.any(axis=1)
    if not starts.any() and cost_s[moves & ~stay].sum() >= 0:
        return moves  # no job starts, and together they would lose more than they win
    return stay
