"""DL2 (Peng et al., TPDS 2021): how well jobs can be sized, by rules and by what is learnt."""

from __future__ import annotations

from trainyard.reproduce import dl2_allreduce, dl2_baselines, dl2_learned, dl2_online, dl2_sweeps
from trainyard.reproduce.study import Study

STUDY = Study(
    "Peng et al., DL2: A Deep Learning-driven Scheduler for Deep Learning Clusters, IEEE TPDS 2021",
    (dl2_learned, dl2_baselines, dl2_sweeps, dl2_allreduce, dl2_online),
)
steps, reproduce = STUDY.steps, STUDY.reproduce
