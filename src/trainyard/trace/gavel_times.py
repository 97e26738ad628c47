"""Run times as in the traces of Gavel (Narayanan et al., OSDI'20), which Synergy took over.

Four jobs in five take 10^U(1.5, 3) minutes, the others 10^U(3, 4).
"""

from __future__ import annotations

import numpy as np

from trainyard.model.arrays import Floats

SHORT, LONG = (1.5, 3.0), (3.0, 4.0)  # decimal logarithms of minutes, drawn uniformly
LONG_SHARE = 0.2  # of the jobs


def draw_log_minutes(n: int, rng: np.random.Generator) -> Floats:
    """Draw the decimal logarithms of n run times in minutes."""
    return np.where(rng.random(n) < LONG_SHARE, rng.uniform(*LONG, n), rng.uniform(*SHORT, n))
