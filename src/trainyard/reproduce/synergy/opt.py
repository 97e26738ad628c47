"""OPT, TUNE and GREEDY: how good they are where OPT can be afforded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.synergy import theirs
from trainyard.reproduce.synergy.gains import BUSY_LOAD, HOURS, split_name
from trainyard.reproduce.synergy.runs import Found, Run, Setting, Window, policy_name
from trainyard.reproduce.synergy.workload import GPUS_PER_NODE, SPLIT, Split, Workload

STAGES = ("", "greedy", "tune", "opt")
PER_STAGE = [Heading(stage or "prop", HOURS) for stage in STAGES]
RATIO = "{:.3f}"
DEPLOYED_JOBS = 100
DYNAMIC_PER_H = 30.0  # theirs: 100 jobs in 12,039 s
QUARTER = 4


class Scale(NamedTuple):
    """How much is done."""

    jobs: int
    gpus: tuple[int, ...]  # of the deployment's clusters
    orders: tuple[str, ...]
    small: tuple[
        tuple[str, float, Split, float, bool], ...
    ]  # order, jobs/h on 128 GPUs, split, CPUs, multi-GPU
    whole: tuple[str, ...]  # orders that are also run on 128 GPUs


def _small(
    orders: Sequence[str], *kinds: tuple[float, Split, float, bool]
) -> list[tuple[str, float, Split, float, bool]]:
    return [(order, *kind) for kind in kinds for order in orders]


FULL = Scale(
    250,
    (16, 32),
    ("FIFO", "SRTF", "LAS"),
    (
        *_small(("FIFO", "SRTF", "LAS", "FTF"), (9.0, SPLIT, 3.0, False)),
        *_small(("SRTF",), (7.0, SPLIT, 3.0, False), (9.0, SPLIT, 4.0, False), (9.0, SPLIT, 6.0, False)),
        *_small(("FIFO", "SRTF"), (10.0, theirs.MIXED, 3.0, False)),
        *_small(("FIFO", "SRTF"), (10.0, theirs.HUNGRY, 3.0, False)),
        *_small(("FIFO", "SRTF"), (4.2, SPLIT, 3.0, True)),
    ),
    (),
)
QUICK = Scale(
    150,
    (16,),
    ("FIFO", "SRTF"),
    (
        *_small(("SRTF",), (9.0, SPLIT, 3.0, False), (10.0, theirs.MIXED, 3.0, False)),
        *_small(("SRTF",), (10.0, theirs.HUNGRY, 3.0, False), (4.2, SPLIT, 3.0, True)),
    ),
    (),
)


class Deployed(NamedTuple):
    """One of the two traces of 100 shorter jobs on one of the small clusters."""

    trace: str
    gpus: int
    order: str

    def run(self, tune: str) -> Run:
        """Return the run with a tune stage."""
        per_h = DYNAMIC_PER_H if self.trace == "dynamic" else None
        work = Workload(DEPLOYED_JOBS, per_h, small=True)
        return Run(policy_name(self.order, tune), work, self.gpus // GPUS_PER_NODE)


def deployed(scale: Scale) -> list[Deployed]:
    """Small traces on small clusters."""
    return [
        Deployed(trace, g, o) for trace in ("static", "dynamic") for g in scale.gpus for o in scale.orders
    ]


def quarters(scale: Scale) -> list[Setting]:
    """The other experiments at a quarter of their size: 32 GPUs, a quarter of the load, fewer jobs."""
    window = Window(0, scale.jobs, 0.0, 0.0)
    return [
        Setting(order, load / QUARTER, split, cpus, multi, 16 // QUARTER, window=window)
        for order, load, split, cpus, multi in scale.small
    ]


def whole(scale: Scale) -> list[Setting]:
    """Settings on all 128 GPUs."""
    return [Setting(order, BUSY_LOAD) for order in scale.whole]


def runs(scale: Scale) -> list[Run]:
    """Every run that the tables need."""
    settings: list[Deployed | Setting] = [*deployed(scale), *quarters(scale), *whole(scale)]
    return [setting.run(stage) for setting in settings for stage in STAGES]


def tables(scale: Scale, found: Found) -> list[Table]:
    """All tables of this file."""
    return [_quality(scale, found), _deployment(scale, found)]


def summary(tables: Sequence[Table]) -> list[Cell]:
    """Row (what, where, how much, theirs): the largest TUNE / OPT in the tables of this file."""
    at = [[column.name for column in table.columns].index("tune/opt") for table in tables]
    pairs = [
        (float(row[k] or 0.0), table.name) for table, k in zip(tables, at, strict=True) for row in table.rows
    ]
    ratio, name = max(pairs)
    return ["largest tune/opt", f"table '{name}', {len(pairs)} settings", ratio, theirs.TUNE_OPT]


def _quality(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for s in (*whole(scale), *quarters(scale)):
        hours: list[Cell] = [s.average_h(found[s.run(stage)]) for stage in STAGES]
        sizes = "1 to 8" if s.multi_gpu else "1"
        rows.append([8 * s.nodes, s.per_h, split_name(s.split), s.cpus_per_gpu, sizes, s.order, *hours])
        rows[-1].append(_ratio(rows[-1]))
    columns = [
        Heading("GPUs"),
        Heading("jobs/h", "{:g}"),
        Heading("mix"),
        Heading("CPUs/GPU", "{:g}"),
        Heading("GPUs/job"),
        Heading("order"),
        *PER_STAGE,
        Heading("tune/opt", RATIO),
    ]
    note = (
        f"Average JCT in hours; on 32 GPUs, of all {scale.jobs} jobs. Theirs at 9 jobs/h on 128 GPUs: GREEDY "
        + ", ".join(f"{order} {hours}" for order, hours in theirs.GREEDY.items())
        + " h."
    )
    return Table("opt", "OPT, TUNE and GREEDY over the experiments", columns, rows, note)


def _ratio(row: list[Cell]) -> float:
    tune, opt = row[-2:]
    assert isinstance(tune, float)
    assert isinstance(opt, float)
    return tune / opt


def _deployment(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for d in deployed(scale):
        row: list[Cell] = [d.trace, d.gpus, d.order]
        row += [float(found[d.run(stage)].jct_h.mean()) for stage in STAGES]
        row.append(_ratio(row))
        known = theirs.DEPLOYED[d.trace, d.gpus, d.order]
        rows.append([*row, *known, known[1] / known[2] if known[2] else None])
    columns = [Heading("trace"), Heading("GPUs"), Heading("order"), *PER_STAGE, Heading("tune/opt", RATIO)]
    columns += [Heading(f"their {name}", HOURS) for name in ("prop", "tune", "opt")]
    note = (
        "100 jobs, average JCT in hours. Theirs: traces with some run times changed by hand; ours: the same "
        "distributions. Their OPT takes the first program's speeds as achieved, without placing the jobs."
    )
    title = "The traces of the deployment: OPT, TUNE and GREEDY"
    return Table("deployment", title, [*columns, Heading("their tune/opt", RATIO)], rows, note)
