"""Profiles of jobs that many tests share: none, a ring, parameter servers beside workers and on their own."""

from __future__ import annotations

import dataclasses

from trainyard.model.profile import Compute, Demand, Loss, Profile, Sync
from trainyard.model.zoo import zoo_profile

SERVED = Profile(batch=64, compute=Compute(0.01, {"V100": 0.001}), sync=Sync("ps", gradient_mb=50.0))
APART = dataclasses.replace(
    SERVED, worker=Demand(1.0, 8.0), server=Demand(0.5, 4.0), loss=Loss(0.1, 1.0, 0.2, 9e3)
)
PROFILES: list[Profile | None] = [None, None, zoo_profile("resnet50"), SERVED, APART]
