"""What has to be done outside, as it is written down before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from trainyard.core.instructions import Fence, Instruction, Kill, Retune, Start, Stop
from trainyard.core.yard import Yard
from trainyard.live.backends.base import Member, RunKey, RunSpec, Shares
from trainyard.model.allocation import Allocation
from trainyard.model.job import Job


class Intent(NamedTuple):
    """One thing to do, known by the event that asked for it and a number."""

    seq: int
    n: int
    kind: str  # start, stop, kill, retune, fence
    job_id: str
    attempt: int
    record: Mapping[str, Any]

    @property
    def key(self) -> RunKey:
        """The run that it is about."""
        return RunKey(self.job_id, self.attempt)


def named(instruction: Instruction) -> tuple[str, str, int] | None:
    """Return kind, job and attempt of what an instruction asks to be done outside, if anything."""
    if isinstance(instruction, Fence):
        return "fence", "", 0
    if not isinstance(instruction, (Start, Retune, Stop, Kill)):
        return None
    return type(instruction).__name__.lower(), instruction.job_id, instruction.attempt


def intent_of(yard: Yard, instruction: Instruction, seq: int, n: int, grace_s: float) -> Intent | None:
    """Return what an instruction asks to be done outside; None if that is nothing."""
    about = named(instruction)
    if about is None:
        return None
    record: dict[str, Any] = {}
    if isinstance(instruction, Start):
        record = _start(yard, instruction)
    elif isinstance(instruction, Retune):
        record = {"shares": _shares(instruction.allocation)}
    elif isinstance(instruction, Stop):
        record = {"grace_s": grace_s}
    elif isinstance(instruction, Fence):
        record = {"node": instruction.node}
    return Intent(seq, n, *about, record)


def _start(yard: Yard, start: Start) -> dict[str, Any]:
    found = yard.find(start.job_id)
    assert found is not None
    return {
        "members": [
            [share.node, list(start.gpus.get(share.node, range(share.gpus))), *share[2:]]
            for share in start.allocation.shares
        ],
        "batch_shares": batch_shares(yard, found.job, start.allocation),
        "lr_scale": lr_scale(found.job, start.allocation.gpus),
    }


def _shares(allocation: Allocation) -> dict[str, list[float]]:
    return {share.node: [share.cpus, share.memory_gb] for share in allocation.shares}


def batch_shares(yard: Yard, job: Job, allocation: Allocation) -> list[float]:
    """Return the part of the global batch of every worker, by rank: the faster its GPU, the more."""
    split = yard.model.batch_split(job, allocation)
    parts: list[float] = []
    for share in allocation.shares:
        if split is not None:
            parts += split.get(share.node, [])
        else:
            gpu_type = yard.cluster.nodes[yard.nodes.index[share.node]].gpu_type
            parts += [yard.cluster.speed_of(gpu_type)] * share.gpus
    total = sum(parts)
    return [part / total for part in parts]


def lr_scale(job: Job, gpus: int) -> float:
    """Return how large the learning rate is beside that of the GPUs asked for: it grows with the batch."""
    if job.profile is not None and job.profile.scaling == "strong":
        return 1.0
    return gpus / job.gpus


def run_spec(intent: Intent, spec: Mapping[str, Any]) -> RunSpec:
    """Return what a backend has to know to start a run."""
    members, rank, server = [], 0, 0
    for node, gpus, servers, cpus, memory_gb in intent.record["members"]:
        members.append(Member(node, tuple(gpus), servers, Shares(cpus, memory_gb), rank, server))
        rank, server = rank + len(gpus), server + servers
    shares = tuple(intent.record["batch_shares"])
    return RunSpec(intent.key, spec, tuple(members), shares, intent.record["lr_scale"])
