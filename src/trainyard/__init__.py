"""Trainyard: who trains when, with how many GPUs of which type, where, and with how much CPU and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainyard._version import __version__

if TYPE_CHECKING:
    from trainyard.api import compare, load_cluster, load_jobs, plan, simulate
    from trainyard.errors import InputError, PlanError, TrainyardError
    from trainyard.model.allocation import Allocation, Plan, Shape, Share
    from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
    from trainyard.model.job import Job
    from trainyard.model.profile import Profile
    from trainyard.model.speed import SpeedModel
    from trainyard.model.zoo import zoo_profile
    from trainyard.policy.grammar import parse_policy
    from trainyard.policy.policy import Policy
    from trainyard.profiling.fit import fit_profile
    from trainyard.profiling.samples import Sample
    from trainyard.sim.result import Result
    from trainyard.state.snapshot import Snapshot
    from trainyard.trace.generate import generate

# Where each public name lives; imported on first use, so that `import trainyard` stays instant.
_HOME = {
    "Allocation": "model.allocation",
    "Cluster": "model.cluster",
    "GpuType": "model.cluster",
    "InputError": "errors",
    "Job": "model.job",
    "Node": "model.cluster",
    "Plan": "model.allocation",
    "PlanError": "errors",
    "Policy": "policy.policy",
    "Profile": "model.profile",
    "Result": "sim.result",
    "Sample": "profiling.samples",
    "Shape": "model.allocation",
    "Share": "model.allocation",
    "Snapshot": "state.snapshot",
    "SpeedModel": "model.speed",
    "TrainyardError": "errors",
    "compare": "api",
    "fit_profile": "profiling.fit",
    "generate": "trace.generate",
    "load_cluster": "api",
    "load_jobs": "api",
    "parse_policy": "policy.grammar",
    "plan": "api",
    "simulate": "api",
    "uniform_cluster": "model.cluster",
    "zoo_profile": "model.zoo",
}

__all__ = [
    "Allocation",
    "Cluster",
    "GpuType",
    "InputError",
    "Job",
    "Node",
    "Plan",
    "PlanError",
    "Policy",
    "Profile",
    "Result",
    "Sample",
    "Shape",
    "Share",
    "Snapshot",
    "SpeedModel",
    "TrainyardError",
    "__version__",
    "compare",
    "fit_profile",
    "generate",
    "load_cluster",
    "load_jobs",
    "parse_policy",
    "plan",
    "simulate",
    "uniform_cluster",
    "zoo_profile",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"trainyard.{_HOME[name]}"), name)
    raise AttributeError(f"module 'trainyard' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
