"""Optimistic profiling, as in Synergy: measure a few CPU counts, compute memory, and fit the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.profile import Input, Profile, Tables
from trainyard.profiling.fit import fit_profile
from trainyard.profiling.measure import Listener, Notify, Waiting
from trainyard.profiling.memory import Dataset, default_memory_gb, memory_rows
from trainyard.profiling.points import Curve, trace_curve
from trainyard.profiling.samples import Sample, Setting, predicted
from trainyard.profiling.share import available_cpus
from trainyard.profiling.turns import Point, Turns

FLAT = 1.1
LOST = 0.2
RISE = 0.05
SLOPE = 0.25  # of what is proportional to the CPUs; less may be a knee before the last count
HALVES_UP_TO = 4


@dataclass(frozen=True, slots=True)
class Profiled:
    """A measured profile, and what it was made of."""

    profile: Profile
    curve: Curve
    alone: str = ""  # why the counts were measured one at a time, if they were

    @property
    def gain(self) -> float:
        """How many times faster the script is with the most CPUs than with the fewest."""
        return self.curve.points[-1].samples_per_s / self.curve.points[0].samples_per_s

    @property
    def error(self) -> float | None:
        """What the profile may be off between measured points; None if there is nothing in between."""
        found = self.curve.held_out_error
        return None if found is None else max(found, self.curve.widest)

    @property
    def model_error(self) -> float | None:
        """The worst error of the model at a measured count in between, when it is fitted to the others."""
        points = self.curve.points
        errors = [_held_out_error(points, i) for i in range(1, len(points) - 1)]
        return max(errors, default=None)


def profile_script(
    command: Sequence[str],
    cpus: Sequence[float],
    seconds: float,
    *,
    name: str = "",
    memory_gb: Sequence[float] = (),
    dataset: Dataset | None = None,
    sample_kb: float = 0.0,
    notify: Notify = lambda _cpus, _speed: None,
    waiting: Waiting = lambda _cpus, _seconds: None,
) -> Profiled:
    """Run a script with some of these CPU counts and make a profile of what it reports."""
    with Turns(command, seconds, Listener(notify, waiting)) as turns:
        curve = trace_curve(sorted(set(cpus)), turns.compare)
    fitted = fit_profile(_samples(curve.points), name=name or script_name(command))
    speeds = {point.cpus: point.samples_per_s for point in curve.points}
    rows = memory_rows(speeds, memory_gb or default_memory_gb(dataset), dataset, sample_kb)
    cpu_s = fitted.input.cpu_s_per_sample if fitted.input else 0.0
    given = Input(cpu_s, sample_kb, dataset.dataset_gb if dataset else 0.0)
    return Profiled(replace(fitted, input=given, tables=Tables(cpu_memory=rows)), curve, turns.alone)


def fitted_speeds(profile: Profile, cpus: Floats) -> Floats:
    """Return what the fitted part of a profile, without its table, tells of one worker with some CPUs."""
    asked = [Sample(1, 1.0, cpus=count) for count in cpus.tolist()]
    return predicted(replace(profile, tables=None), asked, Setting())


def _samples(points: Sequence[Point]) -> list[Sample]:
    return [Sample(1, point.samples_per_s, cpus=point.cpus) for point in points]


def _held_out_error(points: Sequence[Point], index: int) -> float:
    others = [*points[:index], *points[index + 1 :]]
    told = fitted_speeds(fit_profile(_samples(others)), np.array([points[index].cpus]))
    return abs(float(told[0]) / points[index].samples_per_s - 1)


def default_cpus() -> list[float]:
    """All counts that this machine has, with halves on a small one."""
    count = len(available_cpus())
    step = 0.5 if count <= HALVES_UP_TO else 1.0
    return [1 + step * i for i in range(int((count - 1) / step) + 1)]


def script_name(command: Sequence[str]) -> str:
    """Name a profile after the script that is run."""
    scripts = [word for word in command if word.endswith(".py")]
    return PurePath(scripts[0] if scripts else command[0]).stem


def _still_rises(found: Profiled) -> bool:
    if len(found.curve.points) < 2:
        return False
    before, last = found.curve.points[-2:]
    gain = last.samples_per_s / before.samples_per_s - 1
    return gain > max(RISE, SLOPE * (last.cpus / before.cpus - 1))


def remarks(found: Profiled, dataset: Dataset | None) -> list[str]:
    """Say in lines what there is to know of a profile."""
    points = found.curve.points
    low, high = points[0], points[-1]
    lines = [f"measured {len(points)} of {found.curve.grid} CPU counts"]
    if found.error is not None:
        lines[0] += f"; a count that was not measured may be off by {found.error:.1%}"
    if found.model_error is not None:
        lines.append(
            f"fitted to the other counts, the model tells one in between with {found.model_error:.1%} error"
        )
    if found.alone:
        lines.append(f"copies could not take turns, so each CPU count was measured alone: {found.alone}")
    between = f"from {low.cpus:g} to {high.cpus:g} CPUs"
    if found.gain < FLAT and len(points) > 1:
        lines.append(f"speed does not depend on CPUs: {found.gain:.2f}x {between}")
    elif len(points) > 1:
        lines.append(f"speed depends on CPUs: {found.gain:.2f}x {between}")
    if _still_rises(found):
        most = f"speed still rises at {high.cpus:g} CPUs, the most measured"
        lines.append(f"{most}: more are simulated as no faster; measure on a machine with more")
    if dataset is None:
        lines.append("memory is taken not to matter: no dataset size is given")
    lost = max(point.lost for point in points)
    if lost > LOST:
        lines.append(
            f"other programs took up to {lost:.0%} of the speed, which is added again; better repeat"
        )
    return lines
