"""How a batch is split over workers of different speeds, in whole samples.

In proportion to speed all workers finish together, and no other split of the batch finishes sooner. Whole
samples by largest remainder: every worker is within one sample of its share. A worker whose GPU holds fewer
samples than its share gets what it holds, and the others share the rest in the same way.
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import COUNT


def split_batch(batch: int, speeds: Floats, most: Ints | None = None) -> Ints | None:
    """Return the samples of each worker, given their speeds and how many each can hold; None if too many."""
    if most is not None and int(most.sum()) < batch:
        return None
    share, full = np.zeros(len(speeds)), np.zeros(len(speeds), dtype=np.bool_)
    while True:
        left = batch - share[full].sum()
        share[~full] = left * speeds[~full] / speeds[~full].sum() if not full.all() else 0.0
        over = ~full & (share > most) if most is not None else np.zeros_like(full)
        if most is None or not over.any():
            break
        full |= over
        share[over] = most[over]
    return _whole(share, batch, most)


def _whole(share: Floats, batch: int, most: Ints | None) -> Ints:
    """Round down, and give what is missing to the largest remainders that have room."""
    down: Ints = np.floor(share + COUNT).astype(np.int64)
    remainder = share - down
    if most is not None:
        remainder = np.where(down < most, remainder, -np.inf)
    down[np.argsort(-remainder, kind="stable")[: batch - int(down.sum())]] += 1
    return down
