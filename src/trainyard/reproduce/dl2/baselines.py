"""The DL2 paper's setting without learning: how well simple rules do, and how much there is to gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainyard.learn.settings.paper_jobs import SETTINGS
from trainyard.reproduce.dl2.figures import draw_baselines
from trainyard.reproduce.dl2.rules import DRF, OPTIMUS, RULES
from trainyard.reproduce.dl2.runs import Found, Group, Run, results, rows, runs
from trainyard.reproduce.dl2.theirs import AVERAGE_JCT, BETTER_THAN_DRF, BETTER_THAN_OPTIMUS, BOUND
from trainyard.reproduce.findings import Cell, Heading, Table

TRACES = {
    "testbed": 10,
    "s16e3k": 10,
    "n48e4k": 10,
    "h48e4k": 10,
    "mid96": 10,
    "large": 3,
    "busy16": 10,
    "busy48": 10,
}
QUICK_TRACES = {"testbed": 10, "s16e3k": 2, "busy16": 2}


def _groups(quick: bool, validation: bool) -> list[Group]:
    traces = QUICK_TRACES if quick else TRACES
    names = [name for name in traces if not validation or name in AVERAGE_JCT]
    return [Group((name,), SETTINGS[name], traces[name], validation) for name in names]


def tasks(quick: bool) -> list[Run]:
    """Every run, the longest first."""
    return runs([*_groups(quick, False), *_groups(quick, True)], list(RULES))


def tables(quick: bool, found: Found) -> list[Table]:
    """Held-out traces; and theirs beside ours on the validation traces."""
    held_out = [
        row for group in _groups(quick, False) for row in rows(group, list(RULES), (DRF, OPTIMUS), found)
    ]
    paper: list[Cell] = ["the paper", "DL2", None, None, None, BETTER_THAN_DRF, BETTER_THAN_OPTIMUS, None]
    title = "Without learning: average completion time on held-out traces"
    note = "FIFO, SRTF and Tetris give whole jobs all that they may have (16 workers and servers)."
    return [
        results("dl2-baselines", title, ["setting"], [*held_out, paper], note),
        _validation(quick, found),
    ]


def _validation(quick: bool, found: Found) -> Table:
    cells: list[list[Cell]] = []
    for group in _groups(quick, True):
        (name,) = group.label
        theirs = AVERAGE_JCT[str(name)]
        # Of fewer traces than theirs there is nothing to compare.
        comparable = group.traces == TRACES[str(name)]
        for row in rows(group, list(RULES), (DRF, OPTIMUS), found):
            rule, jct, contention = str(row[1]), row[2], row[-1]
            other = theirs.get(rule) if comparable else None
            cells.append([name, rule, jct, other, contention, other and theirs[BOUND] / other])
    columns = [
        Heading("setting"),
        Heading("rule"),
        Heading("avg JCT", "{:.2f}"),
        Heading("public simulator", "{:.2f}"),
        Heading("bound / JCT", "{:.2f}"),
        Heading("bound / JCT there", "{:.2f}"),
    ]
    note = (
        "The same jobs, and the same measured speeds but for failed measurements. Its SRTF goes by "
        "the fraction of a job that is left, its Tetris prefers long jobs, its Optimus with true speeds "
        "stops at the first task that does not help; profiled is there a fit to all measurements."
    )
    title = "The public simulator's validation traces, theirs beside ours"
    return Table("dl2-validation", title, columns, cells, note)


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """Draw the held-out results."""
    return draw_baselines(tables[0])
