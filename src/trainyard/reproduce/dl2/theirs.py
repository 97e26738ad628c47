"""What the DL2 paper says, and what its public simulator gives on its own validation traces."""

from __future__ import annotations

from trainyard.reproduce.dl2.rules import DRF, LOOKAHEAD, ONE_WORKER, OPTIMUS

# Average JCT of DL2, per cent better than with the others on the paper's testbed.
BETTER_THAN_DRF, BETTER_THAN_OPTIMUS = 44.1, 17.5

BOUND = "bound"
# Average JCT in slots with its measured speeds, over ten traces (large: three). Its SRTF goes by the fraction
# of a job that is left and its Tetris prefers long jobs; the rules from "1:1 only" on are none of its own.
RULE_NAMES = (
    DRF,
    "SRTF",
    "FIFO",
    "Tetris",
    OPTIMUS,
    "1:1 only",
    ONE_WORKER,
    LOOKAHEAD,
    "Optimus, profiled",
    BOUND,
)
AVERAGE_JCT = {
    name: dict(zip(RULE_NAMES, slots, strict=True))
    for name, slots in {
        "testbed": (5.501, 32.165, 32.165, 48.099, 4.257, 6.985, 4.036, 3.906, 4.264, 2.669),
        "s16e3k": (4.043, 59.918, 59.918, 74.611, 3.138, 5.935, 3.054, 2.775, 3.257, 2.213),
        "n48e4k": (5.663, 18.033, 18.014, 24.355, 3.902, 7.913, 3.382, 2.983, 3.237, 2.951),
        "mid96": (41.176, 79.945, 80.132, 149.78, 29.264, 59.35, 25.65, 22.57, 24.84, 22.13),
        "large": (41.432, 53.584, 52.717, 60.144, 28.888, 58.33, 25.02, 22.27, 23.76, 22.04),
    }.items()
}
