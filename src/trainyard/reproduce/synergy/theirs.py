"""Published and measured numbers of Synergy: its abstract, and its public simulator (msr-fiddle/synergy).

The simulator was run with the authors' settings: 128 GPUs, one GPU per job, jobs 4000 to 4999, seed 42. Its
FIFO with TUNE at 9 jobs/h gives exactly the numbers that the authors publish beside it.
"""

from __future__ import annotations

from trainyard.reproduce.synergy.runs import Setting
from trainyard.reproduce.synergy.workload import SPLIT, Split

LARGEST = 3.4  # abstract: "improve average JCT up to 3.4x"
TUNE_OPT = "1.05x to 1.10x"  # traces of the deployment, FIFO and SRTF on 16 GPUs
LARGEST_OVER_LOAD = "4.41x (LAS, 8.5 jobs/h)"
SMALLEST = "0.88x (SRTF, 50-0-50)"
ANCHOR = (21.876600555555555, 156.93307777777775, 170.6119975)  # FIFO with TUNE, 9 jobs/h: mean, p99, p99.9

MIXED: Split = (33, 33, 33)
HUNGRY: Split = (50, 0, 50)

# (order, jobs/h) -> average JCT in hours, proportional and TUNE; split 20-70-10, 3 CPUs per GPU
BY_LOAD: dict[tuple[str, float], tuple[float, float]] = {
    **{(order, load): (17.30, 15.25) for order in ("FIFO", "SRTF", "LAS") for load in (5.0, 7.0)},
    ("FIFO", 7.5): (17.36, 15.25),
    ("FIFO", 8.0): (27.43, 15.25),
    ("FIFO", 8.5): (54.96, 15.41),
    ("FIFO", 9.0): (81.09, 21.88),
    ("FIFO", 9.5): (104.8, 42.23),
    ("FIFO", 10.0): (126.2, 62.45),
    ("SRTF", 7.5): (17.36, 15.25),
    ("SRTF", 8.0): (20.87, 15.26),
    ("SRTF", 8.5): (30.35, 15.37),
    ("SRTF", 9.0): (38.03, 16.60),
    ("SRTF", 9.5): (43.82, 27.07),
    ("SRTF", 10.0): (49.88, 31.97),
    ("LAS", 7.5): (17.54, 15.25),
    ("LAS", 8.0): (40.67, 15.32),
    ("LAS", 8.5): (70.31, 15.93),
    ("LAS", 9.0): (85.79, 33.15),
    ("LAS", 9.5): (105.1, 55.42),
    ("LAS", 10.0): (115.0, 66.99),
    ("FTF", 8.5): (476.5, 18.9),
    ("FTF", 9.0): (613.6, 366.5),
}
BY_SPLIT: dict[tuple[str, float, Split], tuple[float, float]] = {
    ("FIFO", 8.0, MIXED): (27.42, 13.54),
    ("SRTF", 8.0, MIXED): (20.88, 13.18),
    ("LAS", 8.0, MIXED): (40.67, 13.17),
}
# Where only the gain is known, or a range of loads for which it holds.
GAIN_BY_SPLIT: dict[tuple[str, float, Split], str] = {
    **{(order, 5.0, MIXED): "1.35x" for order in ("FIFO", "SRTF", "LAS")},
    **{(order, 5.0, HUNGRY): "1.65x" for order in ("FIFO", "SRTF", "LAS")},
    ("FIFO", 9.0, HUNGRY): "1.09x",
    ("LAS", 9.0, HUNGRY): "1.00x",
    **{("SRTF", load, HUNGRY): "0.88-0.91x" for load in (10.0, 11.0, 12.0)},
}
BY_RATIO: dict[tuple[str, float, float], tuple[float, float]] = {
    ("FIFO", 9.0, 4.0): (81.0, 32.1),
    ("FIFO", 9.0, 5.0): (81.0, 42.0),
    ("FIFO", 9.0, 6.0): (81.0, 54.1),
}
# (order, jobs/h as part of the proportional capacity); demands from a Philly log, 1.45 GPUs per job
MULTI_GPU: dict[tuple[str, float], tuple[float, float]] = {
    ("FIFO", 0.95): (47.33, 37.39),
    ("SRTF", 0.95): (22.25, 17.95),
    ("LAS", 0.95): (28.64, 19.37),
    ("SRTF", 1.04): (34.45, 20.89),
}
GAIN_MULTI_GPU: dict[float, str] = {0.57: "1.12x"}
# FIFO, 9 jobs/h: gain by the number of the first of 1,000 measured jobs
BY_WINDOW = {0: 1.23, 1000: 1.84, 2000: 2.42, 4000: 3.71, 8000: 3.81, 16000: 4.58}
BY_SEED = "2.38-3.67x"  # five other seeds, FIFO, 9 jobs/h
SMALL_CLUSTER = {("FIFO", 1.0625): "12.3x", ("LAS", 1.0625): "13.3x"}  # 16 GPUs, near saturation
GREEDY = {"FIFO": 24.98, "SRTF": 22.56, "LAS": 42.02}  # 9 jobs/h

# (trace, GPUs, order) -> average JCT in hours: proportional, TUNE, OPT; 100 jobs of the deployment
DEPLOYED: dict[tuple[str, int, str], tuple[float, float, float | None]] = {
    ("static", 32, "FIFO"): (5.63, 5.08, None),
    ("static", 32, "SRTF"): (4.41, 4.11, None),
    ("static", 32, "LAS"): (5.63, 5.17, None),
    ("static", 16, "FIFO"): (10.42, 9.71, 8.80),
    ("static", 16, "SRTF"): (7.03, 6.98, 6.62),
    ("static", 16, "LAS"): (10.80, 10.10, None),
    ("dynamic", 32, "FIFO"): (4.62, 3.68, None),
    ("dynamic", 32, "SRTF"): (3.91, 3.19, None),
    ("dynamic", 32, "LAS"): (4.56, 3.67, None),
    ("dynamic", 16, "FIFO"): (8.99, 7.58, 6.95),
    ("dynamic", 16, "SRTF"): (6.18, 5.35, 5.04),
    ("dynamic", 16, "LAS"): (9.61, 7.97, None),
}
# GPUs -> CPU seconds of one decision: proportional, TUNE, OPT (both programs, with HiGHS)
DECISION_S = {128: (0.010, 0.02, 0.91), 512: (0.062, 0.11, 3.7), 2048: (0.72, 1.0, 45.0)}


def pair(setting: Setting) -> tuple[float, float] | None:
    """Average JCT in hours with proportional shares and with TUNE, where it is known."""
    order, load = setting.order, setting.per_h
    if setting.split != SPLIT:
        return BY_SPLIT.get((order, load, setting.split))
    if setting.cpus_per_gpu != 3.0:
        return BY_RATIO.get((order, load, setting.cpus_per_gpu))
    return BY_LOAD.get((order, load))


def known_gain(setting: Setting) -> str | None:
    """Return the gain as text where it is known."""
    known = pair(setting)
    if known is None:
        return GAIN_BY_SPLIT.get((setting.order, setting.per_h, setting.split))
    return f"{known[0] / known[1]:.2f}x"
