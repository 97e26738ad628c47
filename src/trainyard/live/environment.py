"""The environment of a worker or parameter server: as torchrun sets it, and our own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainyard.live.backends.base import Member, RunSpec

RESERVED = ("RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")
RESERVED_PREFIXES = ("TRAINYARD_", "LOCAL_", "MASTER_")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the processes of a run find each other."""

    master: tuple[str, int]
    servers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run finds its files."""

    checkpoint: str
    progress: str


def is_reserved(name: str) -> bool:
    """Whether a job may not set this variable, since we do."""
    return name in RESERVED or name.startswith(RESERVED_PREFIXES)


def of_worker(run: RunSpec, member: Member, index: int, where: Addresses, places: Places) -> dict[str, str]:
    """Return the variables of one worker, the `index`-th of its node."""
    rank, local = member.first_rank + index, len(member.gpus)
    return {
        **_of_all(run, where, places),
        "RANK": str(rank),
        "WORLD_SIZE": str(run.workers),
        "LOCAL_RANK": str(index),
        "LOCAL_WORLD_SIZE": str(local),
        "CUDA_VISIBLE_DEVICES": _comma(member.gpus),
        "TRAINYARD_ROLE": "worker",
        "TRAINYARD_BATCH_SHARE": repr(run.batch_shares[rank]),
    }


def of_launcher(run: RunSpec, member: Member, where: Addresses, places: Places) -> dict[str, str]:
    """Return the variables of `torchrun`, one per node, which starts the workers there itself."""
    host, port = where.master
    nodes = [each.node for each in run.members if each.gpus]
    return {
        **_of_all(run, where, places),
        "CUDA_VISIBLE_DEVICES": _comma(member.gpus),
        "TRAINYARD_ROLE": "worker",
        "PET_NNODES": str(len(nodes)),
        "PET_NODE_RANK": str(nodes.index(member.node)),
        "PET_NPROC_PER_NODE": str(len(member.gpus)),
        "PET_MASTER_ADDR": host,
        "PET_MASTER_PORT": str(port),
        "PET_RDZV_BACKEND": "static",
        "PET_RDZV_ID": f"{run.key.job_id}.{run.key.attempt}",
    }


def of_server(run: RunSpec, member: Member, index: int, where: Addresses, places: Places) -> dict[str, str]:
    """Return the variables of one parameter server, the `index`-th of its node."""
    return {
        **_of_all(run, where, places),
        "RANK": str(member.first_server + index),
        "WORLD_SIZE": str(run.workers),
        "LOCAL_RANK": str(index),
        "LOCAL_WORLD_SIZE": str(member.servers),
        "CUDA_VISIBLE_DEVICES": "",
        "TRAINYARD_ROLE": "server",
        "TRAINYARD_BATCH_SHARE": "0.0",
    }


def launches_itself(argv: Sequence[str]) -> bool:
    """Whether a command is torchrun, which starts the workers of a node by itself."""
    words = [word.rsplit("/", 1)[-1] for word in argv[:3]]
    by_module = len(words) == 3 and words[1] == "-m" and words[2] == "torch.distributed.run"
    return bool(words) and (words[0] == "torchrun" or by_module)


def _of_all(run: RunSpec, where: Addresses, places: Places) -> Mapping[str, str]:
    host, port = where.master
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "TRAINYARD_JOB_ID": run.key.job_id,
        "TRAINYARD_ATTEMPT": str(run.key.attempt),
        "TRAINYARD_WORKERS": str(run.workers),
        "TRAINYARD_SERVERS": str(run.servers),
        "TRAINYARD_SERVER_ADDRS": ",".join(f"{host}:{port}" for host, port in where.servers),
        "TRAINYARD_CHECKPOINT_DIR": places.checkpoint,
        "TRAINYARD_PROGRESS": places.progress,
        "TRAINYARD_LR_SCALE": repr(run.lr_scale),
    }


def _comma(indices: Sequence[int]) -> str:
    return ",".join(str(index) for index in indices)
