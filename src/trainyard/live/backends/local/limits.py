"""What limits CPUs and memory of a run on this machine: cgroups of version 1 or 2, or CPU affinity.

Version 1 is what this was tried with; version 2 was only tried against a tree of files that looks like it.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainyard.live.backends.base import Shares

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
GB = 10**9
V1 = ("cpu", "memory", "pids")
V2_NEEDED = ("cpu", "memory")

Way = Literal["cgroup v1", "cgroup v2", "affinity"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the system allows, found out once."""

    way: Way
    parents: dict[str, Path] = field(default_factory=dict)  # of the groups of runs, by controller
    missing: tuple[str, ...] = ()  # controllers of cgroups v1 that cannot be used

    def __str__(self) -> str:
        if self.way == "affinity":
            return "CPUs by affinity only, memory is not limited (no cgroup can be made here)"
        lacks = f" (no cgroup can be made for {', '.join(self.missing)})" if self.missing else ""
        if self.way == "cgroup v2":
            return "CPUs and memory by cgroup v2 (version 2 is not tried on a real system)"
        if "cpu" not in self.parents:
            return f"memory by cgroup v1; CPUs are not limited{lacks}"
        if "memory" not in self.parents:
            return f"CPUs by cgroup v1; memory is not limited{lacks}"
        return f"CPUs and memory by cgroup v1{lacks}"

    def groups(self, title: str) -> dict[str, Path]:
        """The groups of one member."""
        return {controller: parent / f"trainyard.{title}" for controller, parent in self.parents.items()}

    def record(self, title: str) -> dict[str, Any]:
        """Return the same for a shim."""
        version = {"cgroup v1": 1, "cgroup v2": 2, "affinity": 0}[self.way]
        paths = self.groups(title)
        return {"version": version, "paths": {name: str(path) for name, path in paths.items()}}


def find_limits(own: Path = OWN, cgroups: Path = CGROUPS) -> Limits:
    """Find out what can be used: the groups that this process is in must allow groups below them."""
    try:
        lines = own.read_text(encoding="ascii").splitlines()
    except OSError:
        return Limits("affinity")
    mine = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    parents = {}
    for controllers, path in mine.items():
        for name in V1:
            if name in controllers.split(","):
                parents[name] = cgroups / controllers / path.lstrip("/")
    usable = {name: parent for name, parent in parents.items() if _allows(parent)}
    if "cpu" in usable or "memory" in usable:
        return Limits("cgroup v1", usable, tuple(name for name in V1 if name not in usable))
    if "" in mine:
        return _version_2(cgroups / mine[""].lstrip("/"))
    return Limits("affinity")


def _allows(parent: Path) -> bool:
    """Whether a group can be made below this one."""
    trial = parent / f"trainyard.trial.{os.getpid()}"
    try:
        trial.mkdir(exist_ok=True)
    except OSError:
        return False
    with contextlib.suppress(OSError):
        trial.rmdir()  # another thread that asks the same may have done so
    return True


def _version_2(parent: Path) -> Limits:
    """Runs get groups beside the controller's own: a group with processes has no controllers below it."""
    try:
        there = (parent / "cgroup.controllers").read_text(encoding="ascii").split()
        if not set(V2_NEEDED) <= set(there):
            return Limits("affinity")
        wanted = " ".join(f"+{name}" for name in (*V2_NEEDED, "pids") if name in there)
        if _delegates(parent, wanted):
            return Limits("cgroup v2", {"all": parent})
    except OSError:
        pass
    return Limits("affinity")


def _delegates(parent: Path, wanted: str) -> bool:
    """Make room for groups below one's own; if that cannot be, leave everything as it was."""
    leaf, me = parent / "trainyard.controller", str(os.getpid())
    leaf.mkdir(exist_ok=True)
    (leaf / "cgroup.procs").write_text(me, encoding="ascii")
    try:
        (parent / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
    except OSError:  # others are in the group, too
        (parent / "cgroup.procs").write_text(me, encoding="ascii")
        leaf.rmdir()
        return False
    return True


def shares_record(limits: Limits, shares: Shares, in_use: Iterable[list[int]]) -> dict[str, Any]:
    """Return CPUs and memory for a shim; with affinity, the CPUs that fewest others use."""
    if limits.way != "affinity":
        return {"cpus": shares.cpus or None, "memory_bytes": int(shares.memory_gb * GB) or None}
    counts = Counter(cpu for cpus in in_use for cpu in cpus)
    cpus = sorted(os.sched_getaffinity(0), key=lambda cpu: (counts[cpu], cpu))
    return {"cpu_set": sorted(cpus[: max(round(shares.cpus), 1)])}
