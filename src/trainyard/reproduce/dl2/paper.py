"""DL2 (Peng et al., TPDS 2021): how well jobs can be sized, by rules and by what is learnt."""

from __future__ import annotations

from trainyard.reproduce.dl2 import allreduce, baselines, learned, online, sweeps
from trainyard.reproduce.study import Study

STUDY = Study(
    "Peng et al., DL2: A Deep Learning-driven Scheduler for Deep Learning Clusters, IEEE TPDS 2021",
    (learned, baselines, sweeps, allreduce, online),
)
steps, reproduce = STUDY.steps, STUDY.reproduce
