"""The matching market (Liu et al., TPDS 2024): how close to the optimum, how fast, how fair; and online."""

from __future__ import annotations

from trainyard.reproduce import market_fairness, market_gaps, market_online, market_split
from trainyard.reproduce.study import Study

STUDY = Study(
    "Liu et al., Sampling-Based Multi-Job Placement for Heterogeneous Deep Learning Clusters, IEEE TPDS 2024",
    (market_online, market_gaps, market_fairness, market_split),
)
steps, reproduce = STUDY.steps, STUDY.reproduce
