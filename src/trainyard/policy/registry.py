"""All stages by name, with one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from trainyard.policy.order.fairshare import FairShare
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.order.las import Las
from trainyard.policy.order.srtf import Sjf, Srsf, Srtf
from trainyard.policy.order.themis import Ftf
from trainyard.policy.order.tiresias import Tiresias
from trainyard.policy.place.even import Even
from trainyard.policy.place.pack import Pack
from trainyard.policy.place.random import Random
from trainyard.policy.place.spread import Spread
from trainyard.policy.place.tetris import Tetris
from trainyard.policy.size.dl2.stage import Dl2
from trainyard.policy.size.doubling import Doubling
from trainyard.policy.size.drf import Drf
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.size.lookahead import Lookahead
from trainyard.policy.size.optimus import Optimus
from trainyard.policy.size.smd.stage import Smd
from trainyard.policy.size.steepest import Steepest
from trainyard.policy.tune.proportional import Proportional
from trainyard.policy.tune.synergy.opt import SynergyOpt
from trainyard.policy.tune.synergy.stage import Greedy, SynergyTune
from trainyard.policy.types.allox import AlloX
from trainyard.policy.types.gavel import Gavel
from trainyard.policy.types.hadar import Hadar
from trainyard.policy.types.market.stage import Market
from trainyard.policy.types.sia import Sia

Stage = Literal["order", "size", "place", "tune"]
STAGES: tuple[Stage, ...] = ("order", "size", "place", "tune")


@dataclass(frozen=True, slots=True)
class Entry:
    """A name of the policy grammar: the stages it fills, the class behind it, and what it does.

    `line` says first what it does and, after a semicolon, what its parameters are; `paper` is a name and
    a venue. `origin` says where a stage of another package comes from.
    """

    name: str
    stages: tuple[Stage, ...]
    make: type[Any]
    line: str
    paper: str = ""
    origin: str = ""

    @property
    def idea(self) -> str:
        """What it does, without its parameters."""
        return self.line.partition(";")[0]


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "fifo", ("order",), Fifo, "first come, first served; fill=strict|greedy|easy says who may pass"
        ),
        Entry(
            "sjf",
            ("order",),
            Sjf,
            "shortest predicted run time first, never stops a running job; fill as fifo",
        ),
        Entry("srtf", ("order",), Srtf, "shortest remaining time first, preemptive"),
        Entry("srsf", ("order",), Srsf, "smallest remaining GPU-time first, preemptive"),
        Entry(
            "las", ("order",), Las, "least attained GPU-time first; threshold_gpu_s=a:b makes queues of it"
        ),
        Entry(
            "tiresias",
            ("order",),
            Tiresias,
            "two-queue discretised LAS; threshold_gpu_s ends queue 1",
            "Tiresias, NSDI'19",
        ),
        Entry(
            "ftf",
            ("order",),
            Ftf,
            "finish-time fairness: the job that is worst off goes first",
            "Themis, NSDI'20",
        ),
        Entry(
            "fairshare",
            ("order",),
            FairShare,
            "least decayed usage by weight first, preemptive; half_life_s of the usage, slice_s of a turn",
        ),
        Entry("fixed", ("size",), Fixed, "every job gets exactly the GPUs it asked for"),
        Entry(
            "drf",
            ("size",),
            Drf,
            "equal dominant shares, one GPU at a time; demand=best counts CPUs and memory",
            "DRF, NSDI'11",
        ),
        Entry(
            "optimus",
            ("size",),
            Optimus,
            "one worker or server at a time where it saves most; mode=learn needs no profiles",
            "Optimus, EuroSys'18",
        ),
        Entry(
            "lookahead",
            ("size",),
            Lookahead,
            "smallest dominant share first, its best next few workers and servers by speed; ahead=5 tasks",
        ),
        Entry(
            "steepest",
            ("size",),
            Steepest,
            "the next few workers and servers that save most waiting until the next round; ahead=8 tasks",
        ),
        Entry(
            "dl2",
            ("size",),
            Dl2,
            "a trained network adds workers and servers; weights=paper|philly|FILE, fallback=drf",
            "DL2, TPDS'21",
        ),
        Entry(
            "doubling",
            ("size",),
            Doubling,
            "doubles the job that gains most per GPU; mode=explore tries sizes first",
            "Capes et al., NeurIPS'18 workshop",
        ),
        Entry(
            "smd",
            ("size",),
            Smd,
            "fastest workers and servers within the limit, admission by a knapsack of utilities",
            "SMD, INFOCOM'21",
        ),
        Entry(
            "market",
            ("size",),
            Market,
            "a matching market: how many workers of which GPU types, for all jobs at once",
            "Liu et al., TPDS'24",
        ),
        Entry(
            "pack",
            ("place",),
            Pack,
            "fewest nodes, best fit; consolidate=require waits rather than span more",
        ),
        Entry("even", ("place",), Even, "the same on each of the fewest nodes", "Optimus, EuroSys'18"),
        Entry("spread", ("place",), Spread, "workers over as many nodes as possible, the emptiest first"),
        Entry(
            "tetris",
            ("place",),
            Tetris,
            "where demand and free resources are best aligned",
            "Tetris, SIGCOMM'14",
        ),
        Entry("random", ("place",), Random, "random nodes: the reference to beat"),
        Entry(
            "gavel",
            ("size",),
            Gavel,
            "time fractions on GPU types by LP, in rounds; objective=max-min|makespan|ftf|throughput",
            "Gavel, OSDI'20",
        ),
        Entry(
            "allox",
            ("size",),
            AlloX,
            "jobs to GPU types by min-cost matching, stops no job; alpha below 1: the oldest first",
            "AlloX, EuroSys'20",
        ),
        Entry(
            "sia",
            ("size",),
            Sia,
            "sizes and GPU types by an integer program over configurations; p says how fair",
            "Sia, SOSP'23",
        ),
        Entry(
            "hadar",
            ("size",),
            Hadar,
            "each job in turn buys the mix of GPU types that pays most at rising prices",
            "Hadar, IPDPS'24",
        ),
        Entry("proportional", ("tune",), Proportional, "CPUs and memory in proportion to GPUs"),
        Entry(
            "greedy",
            ("tune",),
            Greedy,
            "best-case CPUs and memory, or wait for them",
            "Synergy, OSDI'22",
        ),
        Entry(
            "tune",
            ("tune",),
            SynergyTune,
            "CPUs and memory by need, no job slower than with proportional",
            "Synergy, OSDI'22",
        ),
        Entry(
            "opt",
            ("tune",),
            SynergyOpt,
            "as tune, by linear programs; never worse, much slower",
            "Synergy, OSDI'22",
        ),
    )
}

PRESETS: dict[str, str] = {
    "synergy": "srtf+tune",
    "easy": "fifo(fill=easy)",
}

DEFAULTS: dict[Stage, str] = {"order": "fifo", "size": "fixed", "place": "pack", "tune": "proportional"}
