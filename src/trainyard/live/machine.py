"""This machine as a cluster of one node: its GPUs as the driver reports them, else virtual slots."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from trainyard.model.cluster import Cluster, GpuType, Node

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
SLOT = "slot"
GB = 1e9
OWN, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def this_machine(query: tuple[str, ...] = QUERY) -> tuple[Cluster, str]:
    """Return the cluster, and one line that says what was found."""
    cpus, memory_gb = len(os.sched_getaffinity(0)), memory_bytes() / GB
    gpus = _gpus(query)
    has = f"{cpus} CPUs, {memory_gb:.0f} GB"
    name = socket.gethostname() or "here"
    if gpus:
        model, gpu_gb = gpus[0]
        if len({model for model, _ in gpus}) > 1:
            has += " (GPUs differ; all count as the first: a cluster file tells them apart)"
        node = Node(name, model, len(gpus), float(cpus), memory_gb)
        kind = GpuType(model, memory_gb=gpu_gb) if gpu_gb else GpuType(model)
        return Cluster(name, (node,), {model: kind}), f"{has}, {len(gpus)} {model}"
    node = Node(name, SLOT, cpus, float(cpus), memory_gb)
    return Cluster(name, (node,)), f"{has}, no GPU: {cpus} virtual slots"


def real_gpus(query: tuple[str, ...] = QUERY) -> int:
    """Return how many GPUs the driver reports."""
    return len(_gpus(query))


def _gpus(query: tuple[str, ...]) -> list[tuple[str, float]]:
    """Name and GB of every GPU."""
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.rsplit(",", 1) for line in told.splitlines() if "," in line]
    return [("-".join(name.split()), _memory_gb(mib)) for name, mib in rows]


def _memory_gb(mib: str) -> float:
    """GB of a GPU; one that does not say (a part of another one) has nothing that is known."""
    return float(mib) * 2**20 / GB if mib.strip().isdigit() else 0.0


def memory_bytes() -> int:
    """Return the memory that this process may use."""
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(file.readline().split()[1]) * 1024
    for path in _limits():
        try:
            total = min(total, int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return total


def _limits() -> Iterator[Path]:
    """Files that may limit our memory: those of our own cgroup and of all above it, of either version."""
    try:
        lines = OWN.read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in (*lines, "0::/", "0:memory:/"):
        _, controllers, place = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top, name = (CGROUPS / "memory", "memory.limit_in_bytes") if controllers else (CGROUPS, "memory.max")
        group = top / place.lstrip("/")
        yield from (folder / name for folder in (group, *group.parents) if folder.is_relative_to(top))
