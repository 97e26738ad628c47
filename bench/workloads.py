"""Clusters and jobs for `bench/answers.py`, written to files from a fixed seed.

Every checkout reads the very same files. `trainyard trace generate` makes the two rigid workloads; this file
makes those that no preset has: elastic jobs, parameter servers, GPU types, CPUs and memory of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

Record = dict[str, Any]

V100 = {"gpu_type": "V100", "network_gbps": 25, "intra_gbps": 300, "storage_mbps": 500}
CLUSTERS: dict[str, Record] = {
    "wide": {"nodes": [{**V100, "count": 12, "gpus": 8}]},
    "lab": {"nodes": [{**V100, "count": 6, "gpus": 8, "cpus": 24, "memory_gb": 500}]},
    "slots": {"nodes": [{"count": 16, "prefix": "slot", "gpus": 4, "cpus": 8, "memory_gb": 8}]},
    "types": {
        "gpu_types": {
            "A100": {"speed": 2.2, "memory_gb": 40},
            "V100": {"speed": 1.0, "memory_gb": 32},
            "K80": {"speed": 0.25, "memory_gb": 12},
        },
        "nodes": [
            {**V100, "count": 2, "gpu_type": "A100", "gpus": 8, "cpus": 64, "memory_gb": 900},
            {**V100, "count": 4, "gpus": 4, "cpus": 12, "memory_gb": 250},
            {**V100, "count": 4, "gpu_type": "K80", "gpus": 4, "cpus": 16, "memory_gb": 200},
        ],
    },
}

# Models that are in the zoo, by what they are short of.
HUNGRY = ("alexnet", "resnet18", "m5", "deepspeech2")
LIGHT = ("resnet50", "vgg16", "bert-base", "transformer", "gnmt")

PROFILES: dict[str, Record] = {
    "own-ring": {
        "batch": 256,
        "compute": {"fixed_s": 0.01, "per_sample_s": {"V100": 0.0012, "K80": 0.006}},
        "sync": {"kind": "ring", "gradient_mb": 180, "algorithm": "auto", "overlap": "wait-free"},
        "layers": [{"forward_s": 0.02, "backward_s": 0.04, "mb": mb} for mb in (20, 60, 100)],
        "input": {"cpu_s_per_sample": 0.004, "sample_kb": 110, "dataset_gb": 140},
        "restart_s": 25,
        "loss": {"b0": 0.4, "b1": 0.5, "b2": 0.1, "epoch_samples": 50000},
    },
    "own-servers": {
        "batch": 128,
        "compute": {"fixed_s": 0.02, "per_sample_s": {"V100": 0.002}},
        "sync": {"kind": "ps", "gradient_mb": 90, "worker_overhead_s": 0.002, "server_overhead_s": 0.001},
        "worker": {"cpus": 2, "memory_gb": 16},
        "server": {"cpus": 1, "memory_gb": 8},
    },
    "own-async": {
        "batch": 64,
        "scaling": "weak",
        "compute": {"fixed_s": 0.01, "per_sample_s": {"V100": 0.0015}},
        "sync": {"kind": "ps", "mode": "async", "gradient_mb": 60, "async_share": 0.5},
        "restart_s": 15,
    },
}


def write_clusters(directory: Path) -> None:
    """Write the clusters; a JSON document is YAML too."""
    for name, cluster in CLUSTERS.items():
        (directory / f"{name}.yaml").write_text(json.dumps({"name": name, **cluster}))


def write_failures(directory: Path) -> None:
    """Write when which nodes of the clusters `wide` and `lab` fail: the first three, one twice."""
    times = ((3000, 0, 1800), (9000, 1, 600), (9000, 2, 4000), (20000, 0, 900))
    rows = [f"{time_s},V100-{node},{repair_s}" for time_s, node, repair_s in times]
    (directory / "failures.csv").write_text("\n".join(["time_s,node,repair_s", *rows, ""]))


def write_jobs(directory: Path) -> None:
    """Write the workloads with profiles, and the profiles that are not in the zoo."""
    (directory / "profiles.json").write_text(json.dumps(PROFILES))
    for name, (count, gap_s, make) in MADE.items():
        random, arrival_s, lines = Random(name), 0.0, []
        for number in range(count):
            arrival_s += round(random.expovariate(1 / gap_s), 1)
            job = {"job_id": f"{name}-{number}", "arrival_s": arrival_s, **make(random)}
            lines.append(json.dumps(job))
        (directory / f"{name}.jsonl").write_text("\n".join([*lines, ""]))


def elastic(random: Random) -> Record:
    """Return a job of the zoo that takes from one GPU to sixteen."""
    return {
        "gpus": random.choice((1, 2, 4)),
        "min_gpus": 1,
        "max_gpus": random.choice((8, 16)),
        "model": random.choice((*HUNGRY[:2], *LIGHT)),
        "duration_s": _duration(random),
        "weight": random.choice((1, 1, 2)),
    }


def served(random: Random) -> Record:
    """Return a job with measured speeds by workers and parameter servers, of one of six kinds."""
    kind = random.randrange(6)
    job = {"gpus": 1, "min_gpus": 1, "max_gpus": 8, "samples": random.randrange(20, 400) * 1000}
    if random.random() < 0.3:
        job["deadline_s"] = random.randrange(10_000, 60_000)
    return {**job, "profile": _measured(kind)}


def mixed(random: Random) -> Record:
    """Return a job of any kind, for one GPU type."""
    return random.choice((elastic, _plain, _hungry, _own))(random)


def typed(random: Random) -> Record:
    """Return a job of any kind, every fifth for one of three GPU types only."""
    job = mixed(random)
    return {**job, "gpu_type": random.choice(("A100", "V100", "K80"))} if random.random() < 0.2 else job


def _plain(random: Random) -> Record:
    gpus = random.choice((1, 1, 2, 4, 8))
    return {"gpus": gpus, "duration_s": _duration(random), "tenant": random.choice(("red", "blue"))}


def _hungry(random: Random) -> Record:
    gpus = random.choice((1, 2, 4))
    job = {"gpus": gpus, "duration_s": _duration(random), "model": random.choice(HUNGRY)}
    return {**job, "cpus": 3 * gpus, "memory_gb": 50 * gpus} if random.random() < 0.3 else job


def _own(random: Random) -> Record:
    """Return a job with a profile of its own; the async one is rigid every other time."""
    model = random.choice(list(PROFILES))
    job = {"gpus": 2, "model": model, "samples": random.randrange(100, 4000) * 1000}
    return job if model == "own-async" and random.random() < 0.5 else {**job, "min_gpus": 1, "max_gpus": 8}


def _duration(random: Random) -> float:
    return round(min(random.lognormvariate(8.0, 1.2), 40_000.0), 1)


def _measured(kind: int) -> Record:
    """Make a table: more workers compute faster, more servers send faster, and each costs a little."""
    compute_s, send_s, each_s = 1.0, 0.1 + 0.1 * kind, 0.02 + 0.01 * (kind % 3)
    rows = [
        [w, p, round(100 / (compute_s / w + send_s * w / p + each_s * (w + p)), 3)]
        for w in range(1, 9)
        for p in range(1, 9)
    ]
    return {
        "batch": 32,
        "sync": {"kind": "ps"},
        "tables": {"workers_servers": rows},
        "worker": {"cpus": 2, "memory_gb": 4 if kind % 3 else 0},
        "server": {"cpus": 2, "memory_gb": 0},
        "restart_s": 0,
    }


# Jobs, mean seconds between two of them, and what one is like.
MADE: dict[str, tuple[int, float, Callable[[Random], Record]]] = {
    "rings": (90, 180.0, elastic),
    "servers": (80, 120.0, served),
    "mixed": (90, 150.0, mixed),
    "typed": (90, 120.0, typed),
}
