"""Small settings that several tests of learning share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainyard.learn.episode import Scenario
from trainyard.learn.settings.paper_jobs import SETTINGS, dl2_cluster, dl2_trace
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.zoo import zoo_profile

SETTING = SETTINGS["testbed"]


CLUSTER = dl2_cluster(SETTING.nodes)


def on_testbed(number):
    return Scenario(CLUSTER, dl2_trace(SETTING, np.random.RandomState(number)), SETTING.slot_s)


def ring(number):
    draw = np.random.RandomState(number)
    jobs = [
        Job(
            str(i),
            float(draw.randint(20)) * 60.0,
            2,
            duration_s=float(draw.randint(600, 3000)),
            profile=zoo_profile(("resnet50", "bert-large", "vgg16")[draw.randint(3)]),
            min_gpus=int(draw.randint(1, 3)),
            max_gpus=8,
        )
        for i in range(12)
    ]
    return Scenario(uniform_cluster(2, 8), jobs, 300.0)


YARD = dl2_cluster(10)


def stream(count, seed=0, arrivals=3):
    """More jobs than the testbed's traces have; the yard can bear them."""
    setting = replace(SETTING, jobs=count, arrivals=arrivals)
    return dl2_trace(setting, np.random.RandomState(seed))
