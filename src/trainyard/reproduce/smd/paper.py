"""SMD (Yu et al., INFOCOM 2021): its experiments, theirs beside ours."""

from __future__ import annotations

from trainyard.reproduce.smd import interval, online
from trainyard.reproduce.study import Study

STUDY = Study(
    "Yu et al., A Sum-of-Ratios Multi-Dimensional-Knapsack Decomposition for DNN Resource Scheduling (SMD), "
    "INFOCOM 2021",
    (online, interval),
)
steps, reproduce = STUDY.steps, STUDY.reproduce
