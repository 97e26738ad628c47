"""Kinds of jobs, arrival rates and cluster sizes other than those that a policy was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainyard.learn.settings.paper_jobs import KINDS, SETTINGS, Setting
from trainyard.reproduce.dl2.figures import draw_sweeps
from trainyard.reproduce.dl2.rules import DRF, LOOKAHEAD, ONE_WORKER, OPTIMUS, STEEPEST
from trainyard.reproduce.dl2.runs import Found, Group, Run, results, rows, runs
from trainyard.reproduce.findings import Table

BASE = SETTINGS["s16e3k"]
RULES = (DRF, ONE_WORKER, OPTIMUS, "Optimus, profiled", LOOKAHEAD, STEEPEST)
FULL_TRACES, QUICK_TRACES = 10, 1
SEEN, UNSEEN = KINDS[:4], KINDS[4:]
NODES, RATES = (8, 12, 16, 24, 48), (1, 2, 3, 5, 8)
QUICK_NODES, QUICK_RATES = (8, 16), (2, 5)


def sweeps(quick: bool) -> dict[tuple[str, str], Setting]:
    """Return what varies and its value -> setting."""
    nodes, rates = (QUICK_NODES, QUICK_RATES) if quick else (NODES, RATES)
    kinds = {"first four": SEEN, "last four": UNSEEN, "all": KINDS}
    return {
        **{("nodes", str(n)): replace(BASE, nodes=n) for n in nodes},
        **{("jobs per slot", str(n)): replace(BASE, pattern="poisson", arrivals=n) for n in rates},
        **{("kinds of jobs", name): replace(BASE, kinds=some) for name, some in kinds.items()},
    }


def _groups(quick: bool) -> list[Group]:
    traces = QUICK_TRACES if quick else FULL_TRACES
    return [Group(label, setting, traces) for label, setting in sweeps(quick).items()]


def tasks(quick: bool) -> list[Run]:
    """Every run, the longest first."""
    return runs(_groups(quick), RULES)


def tables(quick: bool, found: Found) -> list[Table]:
    """One table of all sweeps."""
    cells = [row for group in _groups(quick) for row in rows(group, RULES, (DRF, OPTIMUS), found)]
    note = (
        "As s16e3k but for what varies. Jobs per slot: drawn from a Poisson distribution with this mean, and "
        "cut there, as the public simulator does. Kinds of jobs: in the order of its catalogue; two of the "
        "last four train on CPUs."
    )
    title = "Other kinds of jobs, arrival rates and cluster sizes"
    return [results("dl2-sweeps", title, ["varied", "value"], cells, note)]


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """Draw all sweeps."""
    return draw_sweeps(tables[0], RULES)
