"""The clusters that the generator knows: facts of published traces, in `presets.json` with their sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from trainyard.errors import InputError, did_you_mean
from trainyard.trace.arrivals import Batches, BurstyArrivals, Modulation
from trainyard.trace.workload import ByClass, ByTable, ByType, GpuCounts, Mixture, Workload

PLAIN = "poisson"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The real cluster of a trace: nodes and GPUs, and (nodes, GPUs of each) for every kind of node."""

    nodes: int
    gpus: int
    shapes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A cluster to imitate: when jobs come, what they ask for, how they end, and whose they are."""

    name: str
    source: str
    jobs: int
    cluster: ClusterFacts
    arrivals: BurstyArrivals
    workload: Workload
    status: Mapping[str, float]
    tenants: Mapping[str, float]
    expected: Mapping[str, float]


def preset(name: str) -> Preset:
    """Look up a preset by name."""
    facts = _facts()
    if name not in facts:
        raise InputError(f"unknown preset '{name}'{did_you_mean(name, [*facts, PLAIN])}")
    own = facts[name]
    like = facts[own["like"]] if "like" in own else own
    return Preset(
        name,
        own["source"],
        own["jobs"],
        _cluster(own["cluster"]),
        _arrivals(own, like),
        _workload(own),
        own["status"],
        own.get("tenants", {}),
        own["expected"],
    )


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets."""
    return tuple(_facts())


def recommended_cluster(name: str) -> ClusterFacts:
    """Return the cluster that the jobs of a preset really ran on."""
    return preset(name).cluster


@cache
def _facts() -> dict[str, Any]:
    text = resources.files("trainyard.trace").joinpath("presets.json").read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts


def _cluster(own: Mapping[str, Any]) -> ClusterFacts:
    return ClusterFacts(own["nodes"], own["gpus"], tuple((n, g) for n, g in own["shapes"]))


def _arrivals(own: Mapping[str, Any], like: Mapping[str, Any]) -> BurstyArrivals:
    hourly = np.array(own.get("rate_by_hour_of_week", like["rate_by_hour_of_week"]), dtype=float)
    if "rate_per_h" in own:
        hourly = hourly * (own["rate_per_h"] / hourly.mean())
    batch, modulation = like["batch"], like["modulation"]
    tail = batch["tail"] or {"xmin": 10.5, "alpha": 1.0, "max": 11}
    batches = Batches(np.array(batch["pmf"]), tail["xmin"], tail["alpha"], tail["max"], batch["gap_s"])
    return BurstyArrivals(hourly, batches, Modulation(tuple(modulation["sigma"]), tuple(modulation["tau_h"])))


def _workload(own: Mapping[str, Any]) -> Workload:
    if "types" in own:
        types = own["types"]
        shares = {name: t["share"] for name, t in types.items()}
        return ByType(shares, {name: (GpuCounts.of(t["gpus"]), _mixture(t)) for name, t in types.items()})
    if "duration_cdf_percent" in own:
        return ByTable(
            GpuCounts.of(own["gpus"]), np.array(own["duration_cdf_percent"]) / 100, own["coupling"]
        )
    classes = {_least(label): _mixture(fit) for label, fit in own["durations"].items()}
    return ByClass(GpuCounts.of(own["gpus"]), classes)


def _mixture(fit: Mapping[str, Any]) -> Mixture:
    weights, mu, sigma = (np.array(fit[key]) for key in ("weights", "mu_ln", "sigma_ln"))
    clamped, coupling = fit.get("clamped", False), fit.get("coupling", 0.0)
    return Mixture(weights / weights.sum(), mu, sigma, fit["max_s"], clamped, coupling)


def _least(label: str) -> int:
    """Return the fewest GPUs of a class such as "1", "2-4" or "33+"."""
    return int(label.rstrip("+").split("-")[0])
