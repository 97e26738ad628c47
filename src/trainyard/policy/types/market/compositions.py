"""Categories: vectors of worker counts, one for each job. All of them, or samples.

K workers make C(K - 1, S - 1) categories for S jobs if every job gets at least one and none is idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import FINE_PART, LEAST_POSITIVE
from trainyard.policy.types.market.menus import largest_remainder

BLOCK = 4096


def count(workers: int, jobs: int) -> int:
    """How many categories there are."""
    return comb(workers - 1, jobs - 1)


def unrank(rank: int, workers: int, jobs: int) -> list[int]:
    """Return the category of a rank in lexicographic order."""
    sizes = []
    for left in range(jobs - 1, 0, -1):
        size = 1
        while rank >= (behind := comb(workers - size - 1, left - 1)):
            rank -= behind
            size += 1
        sizes.append(size)
        workers -= size
    return [*sizes, workers]


def every(workers: int, jobs: int) -> Iterator[Ints]:
    """Yield all categories, in blocks, in lexicographic order."""
    total = count(workers, jobs)
    for start in range(0, total, BLOCK):
        ranks = range(start, min(start + BLOCK, total))
        yield np.array([unrank(rank, workers, jobs) for rank in ranks], dtype=np.int64)


def uniform(workers: int, jobs: int, samples: int, generator: np.random.Generator) -> Ints:
    """Draw categories, each as likely as any other: distinct cuts of a row of workers."""
    marks = generator.random((samples, workers - 1)).argsort(axis=1)[:, : jobs - 1] + 1
    cuts = np.sort(marks, axis=1)
    ends = np.column_stack([np.zeros(samples, np.int64), cuts, np.full(samples, workers)])
    return np.diff(ends, axis=1)


def prioritised(
    work: Floats, workers: int, samples: int, skipped: float, generator: np.random.Generator
) -> Ints:
    """Draw from the tail of the lexicographic order, jobs with most work first: they get more workers there.

    Our reading of the paper's "job prioritizing for sampling"; `skipped` is the share of ranks left out.
    """
    jobs = len(work)
    total = count(workers, jobs)
    first = int(skipped * total)
    # Ranks may exceed 64 bits: a fraction of 2^62 is fine enough to pick one.
    draws = generator.integers(0, 1 << 62, samples).tolist()
    ranks = [min(first + ((total - first) * draw >> 62), total - 1) for draw in draws]
    sizes = np.array([unrank(rank, workers, jobs) for rank in ranks], dtype=np.int64)
    drawn = np.empty_like(sizes)
    drawn[:, np.argsort(-work, kind="stable")] = sizes
    return drawn


def around(weight: Floats, workers: int, samples: int, spread: float, generator: np.random.Generator) -> Ints:
    """Draw around sizes in proportion to weights; the first one is just these."""
    jobs = len(weight)
    share = np.maximum(weight, FINE_PART * weight.max(initial=LEAST_POSITIVE))
    share = share / share.sum()
    centre = _at_least_one(share, workers)
    concentration = spread * jobs * share
    gamma = generator.standard_gamma(np.broadcast_to(concentration, (samples - 1, jobs))) + LEAST_POSITIVE
    chances = gamma / gamma.sum(axis=1, keepdims=True)
    drawn = 1 + generator.multinomial(workers - jobs, chances)
    return np.concatenate([centre[None], drawn]).astype(np.int64)


def _at_least_one(share: Floats, workers: int) -> Ints:
    """Round shares of the workers to whole ones, at least one for every job."""
    fixed = np.zeros(len(share), dtype=np.bool_)
    while True:
        left = workers - int(fixed.sum())
        part = share / share[~fixed].sum() * left if (~fixed).any() else share
        below = ~fixed & (part < 1.0)
        if not below.any():
            break
        fixed |= below
    sizes = np.ones(len(share), dtype=np.int64)
    if (~fixed).any():
        sizes[~fixed] = largest_remainder(part[~fixed][None], np.array([workers - int(fixed.sum())]))[0]
    return sizes
