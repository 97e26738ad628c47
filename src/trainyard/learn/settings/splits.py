"""Episodes of a setting by their seeds: the paper's jobs, or all-reduce jobs like those of Philly."""

from __future__ import annotations

from functools import cache

import numpy as np

from trainyard.errors import InputError, did_you_mean
from trainyard.learn.episode import Scenario, Source
from trainyard.learn.settings.paper_jobs import HELD_OUT_SEED, SETTINGS, Setting, dl2_cluster, dl2_trace
from trainyard.learn.settings.ring_jobs import RING_SETTINGS, RingSetting, philly_cluster, philly_jobs
from trainyard.learn.workload import Split, mixed
from trainyard.model.cluster import Cluster
from trainyard.model.speed import SpeedModel
from trainyard.model.zoo import FOR_OLDER_GPUS

AnySetting = Setting | RingSetting
ALL: dict[str, AnySetting] = {**SETTINGS, **RING_SETTINGS}
# First seeds of the traces to learn from and to choose by.
TRAINING, VALIDATION = 1_000_000, 500_000
SEEDS = 2**31


def dl2_split(text: str) -> Split:
    """Return the episodes of a setting by name, or of several in turn (a+b)."""
    names = text.split("+")
    for name in names:
        if name not in ALL:
            raise InputError(f"unknown setting '{name}'{did_you_mean(name, ALL)}")
    splits = [split_of(ALL[name]) for name in names]
    return splits[0] if len(splits) == 1 else mixed(splits)


def split_of(setting: AnySetting) -> Split:
    """Return the episodes of a setting."""

    def source(first: int) -> Source:
        return lambda number: episode(setting, (first + number) % SEEDS)

    names = (
        FOR_OLDER_GPUS if isinstance(setting, RingSetting) else tuple(kind.model for kind in setting.kinds)
    )
    return Split(
        source(TRAINING),
        source(VALIDATION),
        lambda number: episode(setting, HELD_OUT_SEED + number),
        setting.slot_s,
        names,
    )


def episode(setting: AnySetting, seed: int) -> Scenario:
    """Return one trace of a setting."""
    cluster, speed = ground(setting)
    if isinstance(setting, RingSetting):
        return Scenario(cluster, philly_jobs(setting, seed), setting.slot_s, speed)
    return Scenario(cluster, dl2_trace(setting, np.random.RandomState(seed)), setting.slot_s, speed)


@cache
def ground(setting: AnySetting) -> tuple[Cluster, SpeedModel]:
    """Return the cluster of a setting, and its speeds, worked out once in each process."""
    cluster = (philly_cluster if isinstance(setting, RingSetting) else dl2_cluster)(setting.nodes)
    return cluster, SpeedModel(cluster)
