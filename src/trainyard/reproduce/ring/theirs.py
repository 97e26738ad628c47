"""What is remembered of Capes et al. (2019), and what a small independent simulation gave.

The full text of the paper could not be had. Its numbers below are recalled from memory, some with little
confidence: they are no ground truth, and nothing here is tested against them.
"""

from __future__ import annotations

# GPUs -> minutes that one job takes (ResNet-110 on CIFAR-10 with Horovod)
MINUTES = {1: 368.0, 2: 232.0, 4: 126.0, 8: 84.0}

# Strategy -> average JCT in hours under extreme, moderate and no contention
AVERAGE_H: dict[str, tuple[float, float, float]] = {
    "precompute": (7.63, 2.63, 1.40),
    "exploratory": (20.42, 2.92, 1.47),
    "eight": (22.76, 6.20, 1.40),
    "four": (12.90, 3.50, 2.2),
}

# The same workload in a few lines of Python, written before this program and without it: 10 seeds.
INDEPENDENT_H: dict[str, tuple[float, float, float]] = {
    "precompute": (6.55, 2.30, 1.42),
    "eight": (11.66, 3.38, 1.42),
    "four": (7.76, 2.32, 2.10),
    "two": (8.16, 3.91, 3.87),
    "one": (7.86, 6.13, 6.13),
}
# (seconds between decisions, seconds of a restart) -> the same with 6 seeds; None: at every event
INDEPENDENT_ROUNDS_H: dict[tuple[float | None, float], tuple[float, float, float]] = {
    (None, 10.0): (6.38, 2.19, 1.41),
    (600.0, 10.0): (6.54, 2.30, 1.49),
    (3600.0, 10.0): (7.64, 2.96, 1.97),
    (600.0, 120.0): (6.63, 2.48, 1.50),
}
