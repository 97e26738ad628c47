"""Doubling for ring jobs (Capes et al., 2019): its experiments, what is remembered of theirs beside ours."""

from __future__ import annotations

from collections.abc import Callable

from trainyard.model.arrays import Floats
from trainyard.reproduce.findings import Findings
from trainyard.reproduce.pool import in_parallel
from trainyard.reproduce.ring import costs, decisions, growth, patterns
from trainyard.reproduce.ring.decisions import Batch
from trainyard.reproduce.ring.figures import draw
from trainyard.reproduce.ring.runs import Ran, Run
from trainyard.reproduce.ring.scale import FULL, QUICK, Scale

PAPER = (
    "Capes, Raheja, Kemertas and Mohomed, Dynamic Scheduling of MPI-based Distributed Deep Learning Training "
    "Jobs, arXiv 1908.08082"
)


def steps(quick: bool) -> int:
    """Return how often `reproduce` will tell that something is done."""
    scale = _scale(quick)
    return len(_runs(scale)) + len(decisions.batches(scale))


def reproduce(quick: bool, tell: Callable[[int], None]) -> Findings:
    """Run all experiments and lay them out."""
    return carry_out(_scale(quick), tell)


def carry_out(scale: Scale, tell: Callable[[int], None]) -> Findings:
    """Run so much of all experiments and lay them out."""
    runs = _runs(scale)
    found = in_parallel(_simulate, runs, tell)
    decided = in_parallel(_decide, decisions.batches(scale), lambda done: tell(len(runs) + done))
    tables = [
        *patterns.tables(scale, found),
        *costs.tables(scale, found),
        *decisions.tables(scale, decided),
        *growth.tables(scale, found),
    ]
    return Findings(PAPER, tables, draw(tables))


def _scale(quick: bool) -> Scale:
    return QUICK if quick else FULL


def _runs(scale: Scale) -> list[Run]:
    """Every run once, the longest first."""
    unique = dict.fromkeys([*patterns.runs(scale), *costs.runs(scale), *growth.runs(scale)])
    return sorted(unique, key=lambda run: ("explore" in run.policy, run.workload.pattern.jobs), reverse=True)


def _simulate(run: Run) -> Ran:
    return run.carry_out()


def _decide(batch: Batch) -> Floats:
    return batch.carry_out()
