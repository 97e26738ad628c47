"""What a shim is told: processes with their commands and environments, limits and times."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainyard.live.backends.base import Member, MemberKey, RunSpec
from trainyard.live.backends.local.layout import Layout
from trainyard.live.environment import Addresses, Places, launches_itself, of_launcher, of_server, of_worker
from trainyard.live.settings import Settings
from trainyard.live.spec import argv_of

HOST = "127.0.0.1"
INHERITED = ("LANG", "LC_ALL", "TZ", "TMPDIR")  # of the controller, unless the job says otherwise


def run_record(
    run: RunSpec,
    member: Member,
    ports: list[int],
    layout: Layout,
    limits: Mapping[str, Any],
    shares: Mapping[str, Any],
    settings: Settings,
    first_gpu: int = 0,
) -> dict[str, Any]:
    """Return what the shim of one member has to know."""
    key = MemberKey(*run.key, member.node)
    return {
        "name": layout.title(key),
        "notify": str(layout.notices),
        "alone": len(member.gpus) == run.workers,
        "processes": _processes(run, member, ports, layout, first_gpu),
        "limits": limits,
        "shares": shares,
        "kill_s": settings.kill_s,
        "log_bytes": settings.log_bytes,
    }


def _processes(
    run: RunSpec, member: Member, ports: list[int], layout: Layout, first_gpu: int
) -> list[dict[str, Any]]:
    """Servers come first, so that workers find them."""
    where = Addresses((HOST, ports[0]), tuple((HOST, port) for port in ports[1:]))
    places = Places(str(layout.checkpoint(run.key.job_id)), str(layout.progress(run.key)))
    argv = argv_of(run.spec)
    key = MemberKey(*run.key, member.node)
    base = base_environment() | dict(run.spec["env"])
    real = replace(member, gpus=tuple(first_gpu + index for index in member.gpus))
    if launches_itself(argv):
        found = [(real.first_rank, "worker", of_launcher(run, real, where, places))] if member.gpus else []
    else:
        found = [
            (real.first_rank + index, "worker", of_worker(run, real, index, where, places))
            for index in range(len(member.gpus))
        ]
    servers = [
        (real.first_server + index, "server", of_server(run, real, index, where, places))
        for index in range(member.servers)
    ]
    mark = {"TRAINYARD_RUN": layout.title(key)}
    return [
        {
            "rank": rank,
            "role": role,
            "launches": role == "worker" and launches_itself(argv),
            "argv": argv,
            "env": base | own | mark,
            "cwd": run.spec["workdir"],
            "log": str(layout.log(key, rank, server=role == "server")),
        }
        for rank, role, own in (*servers, *found)
    ]


def base_environment() -> dict[str, str]:
    """Return who and where a job is, if it says nothing itself."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {"PATH": os.defpath} | kept | _identity(os.getuid())


def _identity(uid: int) -> dict[str, str]:
    """Return who a job is; a container may know no more than a number."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return {"HOME": os.environ.get("HOME", "/"), "USER": str(uid), "LOGNAME": str(uid)}
    return {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell}
