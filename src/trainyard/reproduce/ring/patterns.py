"""Doubling against fixed sizes under the paper's three levels of contention, and under other patterns."""

from __future__ import annotations

from typing import NamedTuple

from trainyard.reproduce.findings import MISSING, Cell, Heading, Table
from trainyard.reproduce.ring import theirs
from trainyard.reproduce.ring.runs import (
    DOUBLING,
    DOUBLING_ALWAYS,
    EXPLORE,
    EXPLORE_ALWAYS,
    PLUS_ONE,
    PLUS_ONE_ALWAYS,
    Found,
    Run,
    average_h,
)
from trainyard.reproduce.ring.scale import Scale
from trainyard.reproduce.ring.workload import Pattern, Workload

HOURS, TIMES = "{:.2f}", "{:.2f}x"
MARGIN = 1.03
HALVED = 2.0


class Strategy(NamedTuple):
    """How many GPUs jobs get."""

    name: str
    policy: str
    size: int | None = None


PAPERS = Strategy("precompute", DOUBLING_ALWAYS)
OURS = Strategy("precompute, hysteresis", DOUBLING)
ONE, EIGHT = Strategy("one", "fifo", 1), Strategy("eight", "fifo", 8)
FIXED = (EIGHT, Strategy("four", "fifo", 4), Strategy("two", "fifo", 2), ONE)
STRATEGIES = (
    PAPERS,
    OURS,
    Strategy("exploratory", EXPLORE_ALWAYS),
    Strategy("exploratory, hysteresis", EXPLORE),
    Strategy("+1", PLUS_ONE_ALWAYS),
    Strategy("+1, hysteresis", PLUS_ONE),
    *FIXED,
)

REMEMBERED = "Remembered: recalled of the paper, whose text could not be had; no ground truth."


# -- which runs ---------------------------------------------------------------------------------------------


def _seeded(strategy: Strategy, pattern: Pattern, scale: Scale) -> list[Run]:
    """One run for each seed."""
    return [Run(strategy.policy, Workload(pattern, seed), strategy.size) for seed in scale.seeds]


def runs(scale: Scale) -> list[Run]:
    """Every run that the tables need."""
    pairs = [(strategy, level) for strategy in STRATEGIES for level in scale.levels]
    pairs += [(strategy, other) for strategy in (OURS, *FIXED) for other in scale.others]
    return [run for strategy, pattern in pairs for run in _seeded(strategy, pattern, scale)]


# -- tables -------------------------------------------------------------------------------------------------


def tables(scale: Scale, found: Found) -> list[Table]:
    """All tables of this file."""
    return [_claims(scale, found), _contention(scale, found), _patterns(scale, found)]


def _hours(strategy: Strategy, pattern: Pattern, scale: Scale, found: Found) -> float:
    return average_h(_seeded(strategy, pattern, scale), found)


def in_one_cell(hours: tuple[float, float, float] | None) -> str | None:
    """Return what somebody else gives for the three levels."""
    return None if hours is None else " / ".join(map(HOURS.format, hours))


def _contention(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for strategy in STRATEGIES:
        ours = [_hours(strategy, level, scale, found) for level in scale.levels]
        others = [in_one_cell(known.get(strategy.name)) for known in (theirs.AVERAGE_H, theirs.INDEPENDENT_H)]
        rows.append([strategy.name, *ours, *others])
    note = (
        f"{REMEMBERED} Independent: a small simulation written before this program, 10 seeds. "
        f"Ours: {len(scale.seeds)} seeds."
    )
    columns = [
        Heading("strategy"),
        *(Heading(level.name, HOURS) for level in scale.levels),
        Heading("remembered"),
        Heading("independent"),
    ]
    return Table("contention", "Average JCT in hours under three levels of contention", columns, rows, note)


def _claims(scale: Scale, found: Found) -> Table:
    rows = [
        _against_best(doubling, level, scale, found) for doubling in (PAPERS, OURS) for level in scale.levels
    ]
    rows += [_is_worst(EIGHT, scale.levels[0], scale, found), _is_worst(ONE, scale.levels[-1], scale, found)]
    columns = [
        Heading("what"),
        Heading("contention"),
        Heading("ours", "{:.3f}"),
        Heading("worst seed", "{:.3f}"),
        Heading("wanted"),
        Heading("holds"),
    ]
    return Table("claims", "What should hold, and whether it does", columns, rows)


def _against_best(doubling: Strategy, level: Pattern, scale: Scale, found: Found) -> list[Cell]:
    """Doubling beside the fixed size that is best on average."""
    best = min(FIXED, key=lambda fixed: _hours(fixed, level, scale, found))
    ratio = _hours(doubling, level, scale, found) / _hours(best, level, scale, found)
    each = _ratios(doubling, best, level, scale, found)
    holds = "yes" if ratio <= MARGIN else "NO"
    what = f"{doubling.name} / best fixed size ({best.name})"
    return [what, level.name, ratio, max(each), f"at most {MARGIN}", holds]


def _is_worst(fixed: Strategy, level: Pattern, scale: Scale, found: Found) -> list[Cell]:
    """One fixed size beside the worst of the others."""
    rest = [other for other in FIXED if other != fixed]
    worst = max(rest, key=lambda other: _hours(other, level, scale, found))
    ratio = _hours(fixed, level, scale, found) / _hours(worst, level, scale, found)
    each = _ratios(fixed, worst, level, scale, found)
    what = f"{fixed.name} / next worst fixed size ({worst.name})"
    return [what, level.name, ratio, min(each), "above 1", "yes" if ratio > 1 else "NO"]


def _ratios(above: Strategy, below: Strategy, level: Pattern, scale: Scale, found: Found) -> list[float]:
    """Seed by seed."""
    pairs = zip(_seeded(above, level, scale), _seeded(below, level, scale), strict=True)
    return [found[a].average_h / found[b].average_h for a, b in pairs]


def _patterns(scale: Scale, found: Found) -> Table:
    rows: list[list[Cell]] = []
    for pattern in (*scale.levels, *scale.others):
        doubling = _hours(OURS, pattern, scale, found)
        fixed = {strategy.name: _hours(strategy, pattern, scale, found) for strategy in FIXED}
        halved = [f"{name} {h / doubling:.1f}x" for name, h in fixed.items() if h >= HALVED * doubling]
        gain = min(fixed.values()) / doubling
        rows.append([pattern.name, doubling, *fixed.values(), gain, ", ".join(halved) or MISSING])
    columns = [
        Heading("pattern"),
        Heading("doubling", HOURS),
        *(Heading(strategy.name, HOURS) for strategy in FIXED),
        Heading("gain", TIMES),
        Heading("halved against"),
    ]
    note = (
        "Average JCT in hours; doubling with hysteresis. Gain: of doubling over the best fixed "
        "size. Quiet: a job every 2 h. Bursts: 16 jobs every 6 h, or 64 every 12 h. Floods: 16 jobs an hour "
        "apart, then 64 at once, twice. Mixed: lengths are log-normal, half of them below a third of the "
        "mean. All gaps are exponential."
    )
    return Table("patterns", "Where the average JCT is halved, and against what", columns, rows, note)
