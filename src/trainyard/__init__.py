"""Trainyard: who trains when, with how many GPUs of which type, where, and with how much CPU and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainyard._version import __version__

if TYPE_CHECKING:
    from trainyard.api import compare, load_cluster, load_jobs, plan, simulate
    from trainyard.errors import InputError, PlanError, TrainyardError
    from trainyard.files.jobs import write_jobs
    from trainyard.learn.batch import BatchEnv
    from trainyard.learn.episode import Scenario
    from trainyard.learn.slot_env import slot_env
    from trainyard.model.allocation import Allocation, Plan, Share
    from trainyard.model.cluster import Cluster, GpuType, Node, uniform_cluster
    from trainyard.model.job import Job
    from trainyard.model.profile import Profile, Sync
    from trainyard.model.shape import Shape
    from trainyard.model.speed import SpeedModel
    from trainyard.model.tenant import Tenant
    from trainyard.model.zoo import ZooEntry, zoo, zoo_profile
    from trainyard.policy.draft import Draft
    from trainyard.policy.grammar import parse_policy
    from trainyard.policy.order.score import JobView, ScoreOrder
    from trainyard.policy.policy import Policy
    from trainyard.policy.request import Request
    from trainyard.policy.stages import Chosen, Order, Place, Shapes, Size, Tune
    from trainyard.profiling.fit import fit_profile
    from trainyard.profiling.samples import Sample
    from trainyard.sim.failures import Failure, RandomFailures
    from trainyard.sim.result import Result
    from trainyard.state.snapshot import Snapshot
    from trainyard.trace.detect import read_trace
    from trainyard.trace.generate import generate, poisson, with_models
    from trainyard.trace.plots import plot_stats
    from trainyard.trace.stats import trace_stats

# Where each public name lives; imported on first use, so that `import trainyard` stays instant.
_HOME = {
    "Allocation": "model.allocation",
    "BatchEnv": "learn.batch",
    "Chosen": "policy.stages",
    "Cluster": "model.cluster",
    "Draft": "policy.draft",
    "Failure": "sim.failures",
    "GpuType": "model.cluster",
    "InputError": "errors",
    "Job": "model.job",
    "JobView": "policy.order.score",
    "Node": "model.cluster",
    "Order": "policy.stages",
    "Place": "policy.stages",
    "Plan": "model.allocation",
    "PlanError": "errors",
    "Policy": "policy.policy",
    "Profile": "model.profile",
    "RandomFailures": "sim.failures",
    "Request": "policy.request",
    "Result": "sim.result",
    "Sample": "profiling.samples",
    "Scenario": "learn.episode",
    "ScoreOrder": "policy.order.score",
    "Shape": "model.shape",
    "Shapes": "policy.stages",
    "Share": "model.allocation",
    "Size": "policy.stages",
    "Snapshot": "state.snapshot",
    "SpeedModel": "model.speed",
    "Sync": "model.profile",
    "Tenant": "model.tenant",
    "TrainyardError": "errors",
    "Tune": "policy.stages",
    "ZooEntry": "model.zoo",
    "compare": "api",
    "fit_profile": "profiling.fit",
    "generate": "trace.generate",
    "load_cluster": "api",
    "load_jobs": "api",
    "parse_policy": "policy.grammar",
    "plan": "api",
    "plot_stats": "trace.plots",
    "poisson": "trace.generate",
    "read_trace": "trace.detect",
    "simulate": "api",
    "slot_env": "learn.slot_env",
    "trace_stats": "trace.stats",
    "uniform_cluster": "model.cluster",
    "with_models": "trace.generate",
    "write_jobs": "files.jobs",
    "zoo": "model.zoo",
    "zoo_profile": "model.zoo",
}

__all__ = [
    "Allocation",
    "BatchEnv",
    "Chosen",
    "Cluster",
    "Draft",
    "Failure",
    "GpuType",
    "InputError",
    "Job",
    "JobView",
    "Node",
    "Order",
    "Place",
    "Plan",
    "PlanError",
    "Policy",
    "Profile",
    "RandomFailures",
    "Request",
    "Result",
    "Sample",
    "Scenario",
    "ScoreOrder",
    "Shape",
    "Shapes",
    "Share",
    "Size",
    "Snapshot",
    "SpeedModel",
    "Sync",
    "Tenant",
    "TrainyardError",
    "Tune",
    "ZooEntry",
    "__version__",
    "compare",
    "fit_profile",
    "generate",
    "load_cluster",
    "load_jobs",
    "parse_policy",
    "plan",
    "plot_stats",
    "poisson",
    "read_trace",
    "simulate",
    "slot_env",
    "trace_stats",
    "uniform_cluster",
    "with_models",
    "write_jobs",
    "zoo",
    "zoo_profile",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"trainyard.{_HOME[name]}"), name)
    raise AttributeError(f"module 'trainyard' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
