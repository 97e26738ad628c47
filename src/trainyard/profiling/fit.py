"""Fitting a profile to samples, so that the speed model tells them again.

The seconds of a step are the largest of up to three sides (`terms`), each linear in unknowns that are not
negative. Which side binds a sample is not known, so two things alternate until nothing changes: every sample
belongs to the side that is largest for it, and each side is solved by non-negative least squares over the
samples that belong to it. Errors count by their ratio, too fast as much as too slow, and samples far off
count little (Huber) and then not at all (Tukey). The best of several starts over all samples is kept.

Unknowns that the samples do not ask for are given up, one after the other, where the rest tells the samples
as well (by the Bayesian information criterion).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints
from trainyard.model.profile import Compute, Fit, Input, Profile, Sync
from trainyard.profiling.least_squares import nonnegative
from trainyard.profiling.samples import Sample, Setting, gpu_types, predicted, wrong_in
from trainyard.profiling.terms import LEAST_S, PER_SAMPLE, Term, profile_of, samples_of_step, terms_of

ROUNDS = 40
HUBER_ROUNDS = 10
HUBER, TUKEY = 1.5, 4.685  # usual tuning constants, in units of the errors' scale
LEAST_SCALE = 0.01  # errors of one in a hundred say nothing against a fit
MOST_SCALE = 0.1  # else a few samples that contradict each other would all count
REJECT_FROM = 8  # of fewer samples none is left out
OUTLIER = 0.1
CAP = 0.15  # what one sample can add to the loss of a model
RIDGE = 1e-9  # decides between unknowns that the samples cannot tell apart
OWN_RIDGE = 1e-12  # for those of one GPU type: what they can explain does not count for the other types
STARTS = (0.05, 0.2, 0.5, 0.8)
LEAST_RATIO = 1e-9
BAD = 0.1  # median error
MANY = 0.2  # of the samples


@dataclass(frozen=True, slots=True)
class _Solution:
    """The unknowns by name, the side that binds each sample, and the mean error."""

    found: Mapping[str, float]
    bound: Ints
    loss: float


def fit_profile(samples: Sequence[Sample], setting: Setting | None = None, name: str = "") -> Profile:
    """Fit a profile to samples; how well it fits is in its `fit`."""
    if not samples:
        raise InputError("there are no samples; give at least one")
    for number, sample in enumerate(samples, 1):
        if wrong := wrong_in(sample):
            raise InputError(wrong[1], where=f"sample {number}", field=wrong[0])
    setting = setting or Setting()
    speeds = np.array([s.samples_per_s for s in samples])
    steps: Floats = samples_of_step(samples, setting.batch, setting.scaling) / speeds
    terms = terms_of(samples, setting)
    found = _simplest(terms, steps)
    profile = profile_of(_with_limits(found, terms, steps, samples), samples, setting, name)
    return replace(profile, fit=goodness(predicted(profile, samples, setting), speeds))


def goodness(told: Floats, speeds: Floats) -> Fit:
    """Compare the speeds that a profile tells with the measured ones."""
    error = np.abs(told / speeds - 1)
    missed, spread = float(((told - speeds) ** 2).sum()), float(((speeds - speeds.mean()) ** 2).sum())
    r2 = 1 - missed / spread if spread > 0 else float(missed == 0)
    far = int(_outliers(_errors(told, speeds)).sum())
    return Fit(len(speeds), far, round(r2, 6), _rounded(float(np.median(error))), _rounded(error.max()))


def doubts(profile: Profile, samples: Sequence[Sample], setting: Setting) -> list[str]:
    """Say in lines why a fitted profile should not be trusted; none if it may be."""
    lines, fit, known = [], profile.fit, _unknowns(profile)
    if fit and fit.median_error > BAD:
        lines.append(f"fits badly: half of the samples are off by over {fit.median_error:.0%}; check them")
    if fit and fit.outliers > MANY * fit.samples:
        lines.append(f"fits badly: {fit.outliers} of {fit.samples} samples are far off; check them")
    if len(samples) <= known:
        counts = f"samples: {len(samples)}, fitted numbers: {known}"
        lines.append(f"too few to judge ({counts}); measure at least {known + 1}")
    if not setting.dataset_gb and len({sample.memory_gb for sample in samples}) > 1:
        lines.append("memory_gb varies but is not used: no dataset size is given; give --dataset-gb")
    return lines


def _unknowns(profile: Profile) -> int:
    """Count the numbers of a profile that were fitted."""
    compute, sync, given = profile.compute or Compute(), profile.sync or Sync(), profile.input or Input()
    found = [
        *(compute.fixed_s, *compute.per_sample_s.values()),
        *(sync.gradient_mb, sync.worker_overhead_s, sync.server_overhead_s),
        *(given.cpu_s_per_sample, given.sample_kb),
    ]
    return sum(value > LEAST_S for value in found)


def _errors(told: Floats, true: Floats) -> Floats:
    """Logarithms of the ratios, which are as large for half as for double."""
    ratios: Floats = np.log(np.maximum(told / true, LEAST_RATIO))
    return ratios


def _outliers(errors: Floats) -> npt.NDArray[np.bool_]:
    return np.abs(errors) > max(OUTLIER, TUKEY * _scale(errors))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _simplest(terms: list[Term], steps: Floats) -> _Solution:
    """Solve with all terms, then without each that the samples do not ask for, the last first."""
    best = _solve(terms, steps)
    for term in reversed([t for t in terms if not t.name.startswith(PER_SAMPLE)]):
        fewer = [t for t in terms if t is not term]
        without = _solve(fewer, steps)
        if _score(without, len(fewer)) <= _score(best, len(terms)):
            terms, best = fewer, without
    return best


def _score(solution: _Solution, terms: int) -> float:
    n = len(solution.bound)
    alike = 0.01 + 0.05 / n  # errors below this say nothing, and less so the fewer samples there are
    return n * math.log(solution.loss + alike) + terms * math.log(n + 1)


def _solve(terms: Sequence[Term], steps: Floats) -> _Solution:
    """Return the best of what several first guesses lead to."""
    sides = {side: [t for t in terms if t.side == side] for side in ("core", "cpu", "storage")}
    used = {side: np.stack([t.seconds for t in own], axis=1) for side, own in sides.items() if own}
    pulls = [_pull(own) for own in sides.values() if own]
    names = [t.name for own in sides.values() for t in own]
    tried = [_alternate(list(used.values()), pulls, steps, *start) for start in _starts(used, steps)]
    values, bound, loss = min(tried, key=lambda one: one[2])
    return _Solution(dict(zip(names, values.tolist(), strict=True)), bound, loss)


def _pull(terms: Sequence[Term]) -> Floats:
    """How much each unknown is pulled to zero."""
    return np.sqrt([OWN_RIDGE if t.name.startswith(PER_SAMPLE) else RIDGE for t in terms])


def _starts(sides: Mapping[str, Floats], steps: Floats) -> list[tuple[Ints, Floats]]:
    """First guesses: an input side binds the samples that are near the limit it would have; or none does."""
    inputs = [column[:, 0] for side, column in sides.items() if side != "core"]
    starts = [np.zeros(len(steps), dtype=np.int64)]
    for shares in itertools.product(STARTS, repeat=len(inputs)):
        bound = np.zeros(len(steps), dtype=np.int64)
        for number, (seconds, share) in enumerate(zip(inputs, shares, strict=True), 1):
            unknown = np.quantile(steps[seconds > 0] / seconds[seconds > 0], share)
            bound[seconds * unknown * 1.1 >= steps] = number
        starts.append(bound)
    return [(bound, told) for bound in starts for told in (steps, _medians(sides, steps, bound))]


def _medians(sides: Mapping[str, Floats], steps: Floats, bound: Ints) -> Floats:
    """Seconds of steps if each side had one unknown for the samples that it binds: their median."""
    told = np.zeros(len(steps))
    for number, columns in enumerate(sides.values()):
        for seconds in columns.T:
            own = (bound == number) & (seconds > 0) & (told == 0)
            if own.any():
                told[own] = seconds[own] * np.median(steps[own] / seconds[own])
    return np.where(told > 0, told, steps)


def _alternate(
    sides: list[Floats], pulls: list[Floats], steps: Floats, bound: Ints, told: Floats
) -> tuple[Floats, Ints, float]:
    """Solve the sides and assign the samples in turn until both stay; return unknowns, sides and loss."""
    weights = _weights(_errors(told, steps), rejecting=False)
    for number in range(ROUNDS):
        size = np.maximum(told, steps)  # so that too fast a sample weighs no more than too slow a one
        rows = [bound == i for i in range(len(sides))]
        found = [
            _solve_side(side[own], pull, steps[own], size[own], weights[own])
            for side, pull, own in zip(sides, pulls, rows, strict=True)
        ]
        seconds = np.stack([side @ values for side, values in zip(sides, found, strict=True)])
        before, bound, told = (bound, weights), seconds.argmax(axis=0), seconds.max(axis=0)
        weights = _weights(_errors(told, steps), number >= HUBER_ROUNDS)
        if (
            number > HUBER_ROUNDS
            and (bound == before[0]).all()
            and np.allclose(weights, before[1], atol=1e-3)
        ):
            break
    error = np.abs(_errors(told, steps))
    return (
        np.concatenate(found),
        bound,
        float(np.minimum(error, CAP if len(error) >= REJECT_FROM else np.inf).mean()),
    )


def _solve_side(seconds: Floats, pull: Floats, steps: Floats, size: Floats, weights: Floats) -> Floats:
    scale = np.sqrt(weights) / size
    return nonnegative(seconds * scale[:, None], steps * scale, pull)


def _weights(errors: Floats, rejecting: bool) -> Floats:
    scale = _scale(errors)
    if rejecting and len(errors) >= REJECT_FROM:
        return np.clip(1 - (np.abs(errors) / scale / TUKEY) ** 2, 0.0, None) ** 2
    return np.minimum(1.0, HUBER / np.maximum(np.abs(errors) / min(scale, MOST_SCALE), HUBER))


def _scale(errors: Floats) -> float:
    """Return the standard deviation that the median error stands for."""
    return max(LEAST_SCALE, 1.4826 * float(np.median(np.abs(errors))))


def _with_limits(
    solution: _Solution, terms: Sequence[Term], steps: Floats, samples: Sequence[Sample]
) -> dict[str, float]:
    """Add the limit of GPUs that always waited for input: nothing faster was seen than the fastest sample."""
    found = dict(solution.found)
    seconds = {t.name: t.seconds for t in terms if t.side == "core"}
    for name in (PER_SAMPLE + t for t in gpu_types(samples)):
        own = seconds[name] > 0
        if not (solution.bound[own] == 0).any():
            rest = sum(found.get(n, 0.0) * s for n, s in seconds.items() if n != name)
            found[name] = max(LEAST_S, float(((steps - rest)[own] / seconds[name][own]).min()))
    return found
