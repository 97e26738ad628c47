"""Every limit of what may be asked for, once: beyond them numbers lose their digits, or a run has no end.

They are far from what clusters, jobs and their users have. Input beyond them is refused where it is read.
"""

from __future__ import annotations

from typing import Final

MAX_GPUS: Final = 1_000_000
MAX_NODES: Final = 100_000
MAX_SEED: Final = 2**63 - 1
MAX_S: Final = 1e12  # beyond it, doubles lose tenths of milliseconds
LARGEST: Final = 1e15  # of any unit: products of a few such numbers are still finite
SMALLEST: Final = 1e-15  # above zero, of any unit: so are quotients
LARGEST_SUM: Final = 1e24  # of what a run adds up: GPU-seconds, samples
SHORTEST_ROUND_S: Final = 0.01  # shorter ones would only keep the clock from advancing
SHORTEST_SLICE_S: Final = 1.0  # of rounds in which a stage gives all GPUs anew
SHORTEST_MTBF_H: Final = 0.001
LONGEST_H: Final = 1e9
MOST_ROUNDS: Final = 10_000_000  # of one run
MOST_FAILURES: Final = 100_000  # of nodes, from the end of one job to the end of the next
