"""Every stage of the registry as tests run it, and random combinations of them.

A new stage needs no line here: it runs as it is, and in combinations with all that its choices allow.
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal, get_args, get_origin

from trainyard.policy.parameters import bare, parameters_of
from trainyard.policy.registry import ENTRIES, STAGES, Entry, Stage
from trainyard.policy.types.by_type import ByType

# Stages that do more than one thing, or that need other numbers to matter in a small workload.
WAYS: dict[str, tuple[str, ...]] = {
    "fifo": ("fifo", "fifo(fill=greedy)", "fifo(fill=easy)"),
    "sjf": ("sjf", "sjf(fill=easy)", "sjf(fairshare=0.5)"),
    "srtf": ("srtf", "srtf(fairshare=0.5,half_life_s=60)"),
    "fairshare": ("fairshare(half_life_s=60,slice_s=20)",),
    "las": ("las", "las(threshold_gpu_s=50:400)"),
    "tiresias": ("tiresias(threshold_gpu_s=100)",),
    "doubling": ("doubling", "doubling(mode=explore,explore_s=20)"),
    "optimus": ("optimus", "optimus(hysteresis=false)", "optimus(mode=learn,explore_s=20)"),
    "smd": ("smd", "smd(solver=milp,charge=used)", "smd(solver=frieze-clarke,utility=inverse)"),
    "pack": ("pack", "pack(consolidate=require)"),
    "gavel": tuple(
        f"gavel(objective={objective},round_s=30)"
        for objective in ("max-min", "makespan", "ftf", "throughput")
    ),
    "allox": ("allox", "allox(alpha=0.3)"),
    "sia": ("sia(round_s=20)",),
    "hadar": ("hadar(round_s=30)",),
    "market": ("market", "market(engine=category)", "market(samples=16)", "market(fair=1.5)"),
}

# Values of parameters that are not a choice of words; one that is not named here keeps its default.
VALUES: dict[str, tuple[str, ...]] = {
    "ahead": ("1", "3"),
    "alpha": ("0.3", "0.8"),
    "beta": ("0", "0.5"),
    "eps": ("0.05", "0.3"),
    "explore_s": ("5", "20"),
    "fair": ("1.2", "2"),
    "gamma": ("0", "1"),
    "half_life_s": ("50", "1000"),
    "inertia": ("0", "2"),
    "k": ("1", "2"),
    "p": ("-0.2", "-2"),
    "patience": ("1", "8"),
    "penalty": ("1.5",),
    "queues": ("2", "3"),
    "round_s": ("7", "30", "60"),
    "samples": ("4", "16"),
    "slice_s": ("10", "60"),
    "threshold_gpu_s": ("30", "50:400"),
    "threshold_s": ("20", "30:90"),
    "weights": ("paper", "philly"),
}
LEFT_OUT = 0.15  # how often a stage is left to its default


def ways(name: str) -> tuple[str, ...]:
    """Return how tests run a stage."""
    return WAYS.get(name, (name,))


def every(stage: Stage, typed: bool = False) -> list[str]:
    """Return all that fills a stage, in each of its ways; sizes that choose GPU types too only if `typed`."""
    entries = [e for e in ENTRIES.values() if stage in e.stages and issubclass(e.make, ByType) == typed]
    return [way for entry in entries for way in ways(entry.name)]


ORDERS, SIZES, PLACES, TUNES = every("order"), every("size"), every("place"), every("tune")
BY_TYPE = every("size", typed=True)
# Every stage, beside others that show what it does.
EACH = [
    *ORDERS,
    *(f"srtf+{size}" for size in SIZES),
    *(f"las+{place}" for place in PLACES),
    *(f"srtf+{tune}" for tune in TUNES),
    *BY_TYPE,
]


def names_in(policies: list[str]) -> set[str]:
    """Return the stages that some policies name."""
    return {term.partition("(")[0] for policy in policies for term in policy.split("+")}


def random_policy(draw: Random) -> str:
    """Combine stages at random, each with random parameters; the grammar refuses some of these."""
    filled: set[Stage] = set()
    terms: list[str] = []
    for stage in STAGES:
        if stage in filled or draw.random() < LEFT_OUT:
            continue
        fit = [e for e in ENTRIES.values() if stage in e.stages and filled.isdisjoint(e.stages)]
        entry = draw.choice(fit)
        filled.update(entry.stages)
        terms.append(random_term(entry, draw))
    return "+".join(terms) or random_policy(draw)


def random_term(entry: Entry, draw: Random) -> str:
    """Give about half of the parameters."""
    known = {name: values_of(name, kind) for name, kind in parameters_of(entry.make).items()}
    given = [f"{name}={draw.choice(v)}" for name, v in known.items() if v and draw.random() < 0.5]
    return f"{entry.name}({','.join(given)})" if given else entry.name


def values_of(name: str, kind: Any) -> tuple[str, ...]:
    """Return what a parameter may be given."""
    wanted = bare(kind)
    if get_origin(wanted) is Literal:
        return get_args(wanted)
    return ("true", "false") if wanted is bool else VALUES.get(name, ())
