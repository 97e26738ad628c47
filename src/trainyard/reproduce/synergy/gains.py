"""TUNE against proportional shares, over load, workloads and servers: where the gain arises and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.reproduce.synergy import theirs
from trainyard.reproduce.synergy.capacity import capacity, mean_gpus
from trainyard.reproduce.synergy.runs import ORDERS, QUICK_WINDOW, WINDOW, Found, Run, Setting, Window, gain
from trainyard.reproduce.synergy.workload import SEED, SPLIT, Split

HOURS, TIMES = "{:.2f}", "{:.2f}x"
OURS = (Heading("prop h", HOURS), Heading("tune h", HOURS), Heading("gain", TIMES))
THEIRS = (Heading("their prop h", HOURS), Heading("their tune h", HOURS), Heading("their gain"))
SPLITS: tuple[Split, ...] = (SPLIT, theirs.MIXED, theirs.HUNGRY)
STABLE_LOAD = 5.0
BUSY_LOAD = 9.0  # past the capacity of proportional shares, about at that of tune
NEAR_FULL = 1.0625  # jobs/h on 16 GPUs
SMALL_NODES = 2
FOLLOWING = 1000  # measured jobs of a window further on


class Scale(NamedTuple):
    """How much of each experiment is done."""

    window: Window
    loads: tuple[float, ...]
    split_loads: tuple[tuple[str, tuple[float, ...]], ...]
    ratios: tuple[float, ...]
    ratio_orders: tuple[str, ...]
    multi_gpu: tuple[tuple[float, float], ...]  # jobs/h, and the same as part of the proportional capacity
    starts: tuple[int, ...]  # first measured jobs
    seeds: tuple[int, ...]
    small_orders: tuple[str, ...]
    event_orders: tuple[str, ...]


FULL = Scale(
    WINDOW,
    (5.0, 8.5, 9.0),
    (("FIFO", (5.0, 9.0)), ("SRTF", (5.0, 10.0, 12.0))),
    (3.0, 4.0, 5.0, 6.0),
    ("FIFO",),
    ((2.3, 0.57), (4.2, 1.04)),
    (0, 1000, 2000, 4000),
    (1, 2),
    ("FIFO",),
    ("FIFO",),
)
QUICK = Scale(
    QUICK_WINDOW,
    (5.0, 8.5, 10.0),
    (("SRTF", (5.0, 8.5, 10.0)),),
    (3.0, 6.0),
    ("FIFO",),
    ((4.2, 1.04),),
    (0, 1000),
    (1,),
    ("FIFO",),
    ("SRTF",),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A column that tells settings apart."""

    column: Heading
    of: Callable[[Setting], Cell]


ORDER = Axis(Heading("order"), lambda s: s.order)
LOAD = Axis(Heading("jobs/h", "{:g}"), lambda s: s.per_h)
MIX = Axis(Heading("mix"), lambda s: split_name(s.split))
RATIO = Axis(Heading("CPUs/GPU", "{:g}"), lambda s: s.cpus_per_gpu)


def split_name(split: Split) -> str:
    """Return a split as the paper writes it."""
    return "-".join(map(str, split))


# -- which settings -----------------------------------------------------------------------------------------


def by_load(scale: Scale) -> list[Setting]:
    """All orders over load."""
    return [Setting(order, load, window=scale.window) for order in ORDERS for load in scale.loads]


def by_split(scale: Scale) -> list[Setting]:
    """More and less CPU-hungry workloads over load."""
    return [
        Setting(order, load, split, window=scale.window)
        for split in SPLITS
        for order, loads in scale.split_loads
        for load in loads
    ]


def by_ratio(scale: Scale) -> list[Setting]:
    """Servers with more CPUs."""
    return [
        Setting(order, BUSY_LOAD, cpus_per_gpu=ratio, window=scale.window)
        for order in scale.ratio_orders
        for ratio in scale.ratios
    ]


def multi_gpu(scale: Scale) -> list[Setting]:
    """Jobs of one to eight GPUs."""
    return [
        Setting(order, load, multi_gpu=True, window=scale.window)
        for load, _ in scale.multi_gpu
        for order in ORDERS
    ]


def further_on(scale: Scale) -> list[Setting]:
    """The same jobs, measured earlier and later; one run serves all."""
    windows = [
        scale.window._replace(first=first, last=first + FOLLOWING, at_least=scale.starts[-1] + FOLLOWING)
        for first in scale.starts
    ]
    return [Setting("FIFO", BUSY_LOAD, window=window) for window in windows]


def other_seeds(scale: Scale) -> list[Setting]:
    """The same setting with other random numbers."""
    return [Setting("FIFO", BUSY_LOAD, seed=seed, window=scale.window) for seed in scale.seeds]


def small_cluster(scale: Scale) -> list[Setting]:
    """16 GPUs, near saturation."""
    return [Setting(order, NEAR_FULL, nodes=SMALL_NODES, window=scale.window) for order in scale.small_orders]


def by_events(scale: Scale) -> list[Setting]:
    """Settings that are also run event by event, with restart costs."""
    return [Setting(order, BUSY_LOAD, window=scale.window) for order in scale.event_orders]


def pairs(scale: Scale) -> list[Setting]:
    """Every setting that is run with proportional shares and with tune."""
    makers = (by_load, by_split, by_ratio, multi_gpu, further_on, other_seeds, small_cluster, by_events)
    return [setting for make in makers for setting in make(scale)]


def runs(scale: Scale) -> list[Run]:
    """Every run that the tables need."""
    wanted = [setting.run(tune) for setting in pairs(scale) for tune in ("", "tune")]
    return wanted + [s.by_events(tune) for s in by_events(scale) for tune in ("", "tune")]


# -- tables -------------------------------------------------------------------------------------------------


def _ours(setting: Setting, found: Found) -> list[Cell]:
    before, after = (setting.average_h(found[setting.run(tune)]) for tune in ("", "tune"))
    return [before, after, before / after]


def _theirs(setting: Setting) -> list[Cell]:
    return [*(theirs.pair(setting) or (None, None)), theirs.known_gain(setting)]


def _beside(
    name: str, title: str, axes: Sequence[Axis], settings: Sequence[Setting], found: Found, note: str = ""
) -> Table:
    """Theirs beside ours."""
    rows = [[*(axis.of(s) for axis in axes), *_ours(s, found), *_theirs(s)] for s in settings]
    return Table(name, title, [*(axis.column for axis in axes), *OURS, *THEIRS], rows, note)


def tables(scale: Scale, found: Found) -> list[Table]:
    """All tables of this file."""
    first, last = scale.window[:2]
    measured = f"Average JCT of jobs {first} to {last - 1} (theirs: 4000 to 4999); prop: proportional shares."
    inverted = "Their FTF serves the job that is best off first, ours the one that is worst off."
    return [
        _beside("load", "Load", (ORDER, LOAD), by_load(scale), found, f"{measured} {inverted}"),
        _anchor(scale, found),
        _capacities(scale),
        _beside(
            "splits",
            "Workload mixes: image-language-speech",
            (MIX, ORDER, LOAD),
            by_split(scale),
            found,
            measured,
        ),
        _beside("ratios", "CPUs per GPU", (RATIO, ORDER, LOAD), by_ratio(scale), found, measured),
        _multi_gpu(scale, found),
        _windows(scale, found),
        _elsewhere(scale, found),
        _events(scale, found),
    ]


def summary(scale: Scale, found: Found) -> list[list[Cell]]:
    """Rows (what, where, how much, theirs): the largest gains, those in the stable region, the smallest."""
    stable = [Setting("SRTF", STABLE_LOAD, split, window=scale.window) for split in SPLITS]
    chosen = [
        ("largest gain", max(pairs(scale), key=lambda s: gain(s, found)), f"{theirs.LARGEST}x (abstract)"),
        (
            "largest gain over load",
            max(by_load(scale), key=lambda s: gain(s, found)),
            theirs.LARGEST_OVER_LOAD,
        ),
        *(("gain in the stable region", setting, theirs.known_gain(setting)) for setting in stable),
        ("smallest gain", min(pairs(scale), key=lambda s: gain(s, found)), theirs.SMALLEST),
    ]
    return [[what, _where(s), gain(s, found), told] for what, s, told in chosen]


def _where(setting: Setting) -> str:
    gpus, split = 8 * setting.nodes, split_name(setting.split)
    sizes = ", up to 8 GPUs per job" if setting.multi_gpu else ""
    seed = f", seed {setting.seed}" if setting.seed != SEED else ""
    first, last = setting.window[:2]
    return (
        f"{setting.order}, {setting.per_h:g} jobs/h on {gpus} GPUs with {setting.cpus_per_gpu:g} CPUs each, "
        f"{split}, jobs {first} to {last - 1}{sizes}{seed}"
    )


def _anchor(scale: Scale, found: Found) -> Table:
    setting = Setting("FIFO", BUSY_LOAD, window=scale.window)
    measured = found[setting.run("tune")].jct_h[scale.window.first : scale.window.last]
    ours = [float(measured.mean()), *np.quantile(measured, (0.99, 0.999)).tolist()]
    rows = [
        [name, theirs_h, ours_h]
        for name, theirs_h, ours_h in zip(("mean", "p99", "p99.9"), theirs.ANCHOR, ours, strict=True)
    ]
    columns = [Heading("JCT"), Heading("theirs h", HOURS), Heading("ours h", HOURS)]
    title = "The setting whose numbers the authors publish: FIFO with TUNE, 9 jobs/h"
    return Table("anchor", title, columns, rows)


def _capacities(scale: Scale) -> Table:
    kinds = [(split, 3.0) for split in SPLITS] + [(SPLIT, ratio) for ratio in scale.ratios if ratio != 3.0]
    rows: list[list[Cell]] = []
    for split, ratio in kinds:
        most = capacity(split, ratio)
        rows.append([split_name(split), ratio, *most, most.tuned / most.proportional])
    columns = [
        MIX.column,
        RATIO.column,
        Heading("prop jobs/h", HOURS),
        Heading("best jobs/h", HOURS),
        Heading("ratio", TIMES),
    ]
    note = "Beyond these rates queues grow without end. Best shares: by a linear program, a bound for tune."
    return Table("capacity", "Capacity of 128 GPUs", columns, rows, note)


def _multi_gpu(scale: Scale, found: Found) -> Table:
    part_of = dict(scale.multi_gpu)
    rows: list[list[Cell]] = []
    for s in multi_gpu(scale):
        part = part_of[s.per_h]
        known = theirs.MULTI_GPU.get((s.order, part))
        told = f"{known[0] / known[1]:.2f}x" if known else theirs.GAIN_MULTI_GPU.get(part)
        rows.append([s.order, s.per_h, part, *_ours(s, found), *(known or (None, None)), told])
    columns = [ORDER.column, LOAD.column, Heading("of capacity", "{:.2f}"), *OURS, *THEIRS]
    note = (
        f"Ours: 70% of jobs with 1 GPU, 10% with 2, 15% with 4, 5% with 8 ({mean_gpus():.2f} on average); "
        "theirs: demands of a Philly log (1.45 on average), at the same part of the capacity."
    )
    return Table("multi_gpu", "Jobs of several GPUs", columns, rows, note)


def _windows(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for s in further_on(scale):
        first, last = s.window[:2]
        rows.append([f"{first} to {last - 1}", *_ours(s, found), theirs.BY_WINDOW[first]])
    columns = [Heading("jobs"), *OURS, Heading("their gain", TIMES)]
    return Table("windows", f"Which jobs are measured: FIFO, {BUSY_LOAD:g} jobs/h", columns, rows)


def _elsewhere(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for s in (*other_seeds(scale), *small_cluster(scale)):
        told = theirs.SMALL_CLUSTER.get((s.order, s.per_h), theirs.BY_SEED)
        rows.append([8 * s.nodes, s.order, s.per_h, s.seed, *_ours(s, found), told])
    columns = [Heading("GPUs"), ORDER.column, LOAD.column, Heading("seed"), *OURS, Heading("their gain")]
    note = "Theirs on 128 GPUs: the range over five seeds of their own."
    return Table("elsewhere", "Other seeds, and a small cluster near saturation", columns, rows, note)


def _events(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for s in by_events(scale):
        for way, make in (
            ("rounds of 300 s, restarts free", s.run),
            ("every event, restarts 10 s", s.by_events),
        ):
            before, after = (found[make(tune)] for tune in ("", "tune"))
            hours = s.average_h(before), s.average_h(after)
            rows.append([s.order, way, *hours, hours[0] / hours[1], after.restarts])
    columns = [ORDER.column, Heading("decisions"), *OURS, Heading("restarts with tune", "{:,}")]
    title = f"As in the paper, and as `simulate` does it: {BUSY_LOAD:g} jobs/h"
    return Table("events", title, columns, rows)
