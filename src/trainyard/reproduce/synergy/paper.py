"""Synergy (Mohan et al., OSDI 2022): its experiments, theirs beside ours."""

from __future__ import annotations

from collections.abc import Callable

from trainyard.reproduce.findings import Findings, Heading, Table
from trainyard.reproduce.pool import in_parallel
from trainyard.reproduce.synergy import gains, opt
from trainyard.reproduce.synergy.decisions import FULL as ALL_SIZES
from trainyard.reproduce.synergy.decisions import QUICK as FEW_SIZES
from trainyard.reproduce.synergy.decisions import decision_table
from trainyard.reproduce.synergy.figures import draw
from trainyard.reproduce.synergy.runs import Run, carry_out, effort

PAPER = "Mohan et al., Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters (Synergy), OSDI 2022"

SUMMARY = [Heading("what"), Heading("where"), Heading("how much", "{:.2f}x"), Heading("theirs")]


def steps(quick: bool) -> int:
    """Return how often `reproduce` will tell that something is done."""
    return len(_runs(quick))


def reproduce(quick: bool, tell: Callable[[int], None]) -> Findings:
    """Run all experiments and lay them out."""
    scale, opt_scale = (gains.QUICK, opt.QUICK) if quick else (gains.FULL, opt.FULL)
    found = in_parallel(carry_out, _runs(quick), tell)
    quality = opt.tables(opt_scale, found)
    rows = [*gains.summary(scale, found), opt.summary(quality)]
    summary = Table("summary", "In short: average JCT, proportional / tune", SUMMARY, rows)
    # Decisions come alone, after everything else: their time is measured.
    decisions = decision_table(FEW_SIZES if quick else ALL_SIZES)
    tables = [summary, *gains.tables(scale, found), *quality, decisions]
    return Findings(PAPER, tables, draw(tables))


def _runs(quick: bool) -> list[Run]:
    """Every run once, the longest first."""
    scale, opt_scale = (gains.QUICK, opt.QUICK) if quick else (gains.FULL, opt.FULL)
    unique = dict.fromkeys([*gains.runs(scale), *opt.runs(opt_scale)])
    return sorted(unique, key=effort, reverse=True)
