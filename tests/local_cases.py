"""A local backend in a folder, with real processes; nothing of it is left when a test is over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from trainyard.live.backends.base import Member, MemberKey, MemberState, RunKey, RunSpec, Shares
from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.backends.local.limits import CGROUPS, Limits, find_limits
from trainyard.live.backends.local.look import is_held
from trainyard.live.settings import Settings

PATIENCE_S = 30.0  # tests wait for what has to happen, however busy the machine is
SETTINGS = Settings(kill_s=1.0)
KEY = RunKey("1", 1)
UNLIMITED = Shares(0.0, 0.0)
SHORT = {"$C": "$TRAINYARD_CHECKPOINT_DIR", "LOOP": "while :; do sleep 0.02; done"}  # in texts for the shell
NO_GROUPS = Limits("affinity")
PLAIN, GROUPS = "without cgroups", "with cgroups"
STORE = f"{os.getpid():08x}"  # its first letters name everything that runs


def until(said, patience_s=PATIENCE_S):
    """Wait for something to be true and return it."""
    end = time.monotonic() + patience_s
    while not (found := said()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
    return found


def member(node="n0", gpus=(0,), servers=0, first_rank=0, first_server=0, shares=UNLIMITED):
    return Member(node, tuple(gpus), servers, shares, first_rank, first_server)


def run_of(command, *members, key=KEY, env=None, workdir="/", **more):
    """A run of a text for the shell, or of a list of words."""
    for name, meaning in SHORT.items() if isinstance(command, str) else ():
        command = command.replace(name, meaning)
    members = members or (member(),)
    workers = sum(len(each.gpus) for each in members)
    spec = {"command": command, "workdir": str(workdir), "env": env or {}, "grace_s": None}
    return RunSpec(key, spec, tuple(members), (1.0 / max(workers, 1),) * workers, **more)


class Bench:
    """A backend that tests call without waiting for it in words."""

    def __init__(self, root, limits=NO_GROUPS, settings=SETTINGS, epoch=1, **more):
        self.root = Path(root)
        self.backend = LocalBackend(self.root, STORE, epoch, settings, limits, **more)
        self.layout, self.limits = self.backend.layout, self.backend.limits

    def start(self, run):
        asyncio.run(self.backend.ensure_started(run))

    def stop(self, key=KEY, grace_s=PATIENCE_S):
        asyncio.run(self.backend.ensure_stopping(key, grace_s))

    def kill(self, key=KEY):
        asyncio.run(self.backend.ensure_gone(key))

    def end_servers(self, key=KEY):
        asyncio.run(self.backend.end_servers(key))

    def retune(self, cpus, memory_gb=0.0, key=KEY, node="n0"):
        return asyncio.run(self.backend.retune(key, {node: Shares(cpus, memory_gb)}))

    def forget(self, key=KEY):
        asyncio.run(self.backend.forget(key))

    def look(self, only=None):
        return asyncio.run(self.backend.observe(only))

    def seen(self, key=KEY, node="n0"):
        return self.look().members[MemberKey(*key, node)]

    def started(self, key=KEY, node="n0"):
        """Wait until all processes are started."""
        until(lambda: self.seen(key, node).state is not MemberState.ABSENT)
        until(lambda: self.seen(key, node).state is not MemberState.PENDING)

    def ended(self, key=KEY, node="n0"):
        """Wait for the end; return how it was."""
        return until(lambda: self.seen(key, node).ended)

    def log(self, rank=0, key=KEY, server=False, offset=0):
        async def read():
            return b"".join([d async for _, d in self.backend.logs(key, rank, server=server, offset=offset)])

        return asyncio.run(read())

    def directory(self, key=KEY, node="n0"):
        return self.layout.member(MemberKey(*key, node))

    def file(self, name, key=KEY):
        """A file in the job's checkpoint directory."""
        return self.layout.checkpoint(key.job_id) / name

    def close(self):
        """End everything, and see that nothing is left."""
        for key in list(self.backend._marked):
            until(lambda key=key: self._gone(key))
        for shim in list(self.backend._shims):
            shim.wait(PATIENCE_S)
        self.backend.close()
        assert left_of(self.layout.prefix) == []
        assert groups_of(self.layout.prefix) == []

    def _gone(self, key):
        self.kill(key)
        return all(seen.state is MemberState.EXITED for seen in self.look([key]).members.values())


def benches(*ways):
    """Make a fixture: a backend with or without cgroups, or one after the other."""

    @pytest.fixture(params=ways)
    def made(tmp_path, request):
        bench = Bench(tmp_path, groups_or_skip() if request.param == GROUPS else NO_GROUPS)
        yield bench
        bench.close()

    return made


def left_of(prefix):
    """Processes that have the name of a store in their environment."""
    needle, found = f"\0TRAINYARD_RUN={prefix},".encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if needle in b"\0" + Path(f"/proc/{name}/environ").read_bytes() and not is_zombie(name):
                    found.append(int(name))
    return found


def groups_of(prefix):
    """Cgroups that have the name of a store."""
    start = f"trainyard.{prefix},"
    return [
        f"{path}/{name}" for path, names, _ in os.walk(CGROUPS) for name in names if name.startswith(start)
    ]


def is_zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def is_alive(pid):
    return not is_zombie(pid)


def kill_shim(bench, key=KEY, node="n0"):
    """Kill a shim, as the kernel does that is out of memory, and wait until it is gone."""
    import json

    pid = json.loads((bench.directory(key, node) / "shim.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_held(bench.directory(key, node) / "lock"))


def groups_or_skip():
    """What this system allows; skip where that is not cgroups of version 1."""
    limits = find_limits()
    if limits.way != "cgroup v1":
        pytest.skip("needs cgroups v1")
    return limits


def spawn(*words, **more):
    """Start a process of our own."""
    return subprocess.Popen(words, **more)
