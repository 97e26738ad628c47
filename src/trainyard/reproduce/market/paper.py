"""The matching market (Liu et al., TPDS 2024): how close to the optimum, how fast, how fair; and online."""

from __future__ import annotations

from trainyard.reproduce.market import fairness, gaps, online, split
from trainyard.reproduce.study import Study

STUDY = Study(
    "Liu et al., Sampling-Based Multi-Job Placement for Heterogeneous Deep Learning Clusters, IEEE TPDS 2024",
    (online, gaps, fairness, split),
)
steps, reproduce = STUDY.steps, STUDY.reproduce
