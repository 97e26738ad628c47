"""Jobs as processes of this machine: its nodes may be pretended, its processes are real.

Everything is a file (`layout.py`), so that a controller that comes back finds all of it. Whoever acts first
marks the member as one that may be there; the shim itself sees to it that nothing starts twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.live.backends.base import (
    MemberKey,
    Observation,
    Progress,
    RunKey,
    RunSpec,
    Seen,
    Shares,
    Unknown,
)
from trainyard.live.backends.local.layout import PRIVATE, Layout, key_of, read_json, write_json
from trainyard.live.backends.local.limits import Limits, find_limits, shares_record
from trainyard.live.backends.local.logs import read_log, tail_offset
from trainyard.live.backends.local.look import Leftovers, progress_of, seen
from trainyard.live.backends.local.ports import free_ports
from trainyard.live.backends.local.run_file import run_record
from trainyard.live.backends.local.shim.archive import shim_file
from trainyard.live.backends.local.shim.files import take_lock
from trainyard.live.labels import Label, nothing
from trainyard.live.settings import Settings

KILL_FOR_S = 3.0  # one call tries so long to end what a dead shim left; the next goes on


class FencedError(TrainyardError):
    """A newer controller has taken over these jobs."""


class LocalBackend:
    """Starts, stops and watches processes of this machine."""

    name = "local"

    def __init__(
        self,
        root: Path,
        store_id: str,
        epoch: int,
        settings: Settings,
        limits: Limits | None = None,
        offsets: Mapping[str, int] | None = None,
        at: Label = nothing,
    ) -> None:
        """Begin with the files of `root`; `offsets` are the first real GPU of every node."""
        self.layout = Layout(root, store_id)
        self.layout.prepare()
        self._shim = shim_file(root)
        self.limits = limits or find_limits()
        self.settings = settings
        self.noticed: set[RunKey] = set()  # shims said that there is something to see
        self._epoch, self._at = epoch, at
        self._offsets = offsets or {}
        self._places: dict[RunKey | MemberKey, str] = {}
        self._progress: dict[RunKey, tuple[tuple[int, ...], Progress | None]] = {}
        self._shims: list[subprocess.Popen[bytes]] = []
        self._choosing = Lock()
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="local")
        self._marked: dict[RunKey, list[MemberKey]] = {}
        for key in self.layout.marked():
            self._marked.setdefault(key.run, []).append(key)
        self._take_over()

    def _take_over(self) -> None:
        """An older controller that only slept acts no more."""
        path = self.layout.root / "epoch.json"
        if (read_json(path) or {"epoch": 0})["epoch"] > self._epoch:
            raise FencedError("a newer controller has taken over")
        write_json(path, {"epoch": self._epoch})

    # -- what is asked for ----------------------------------------------------------------------

    async def ensure_started(self, run: RunSpec) -> None:
        """Start a shim for every member, unless there was one or the run has to be gone."""
        await self._call(self._start, run)

    async def ensure_stopping(self, key: RunKey, grace_s: float) -> None:
        """Have the shims tell the workers to save their work and end."""
        await self._call(self._leave_marker, key, "stop", {"grace_s": grace_s})

    async def ensure_gone(self, key: RunKey) -> None:
        """Have the shims end everything; where one died, do that ourselves."""
        await self._call(self._end, key)

    async def end_servers(self, key: RunKey) -> None:
        """Have the shims end the parameter servers."""
        await self._call(self._leave_marker, key, "end", {})

    async def retune(self, key: RunKey, shares: Mapping[str, Shares]) -> bool:
        """Change what running processes may use."""
        there: bool = await self._call(self._retune, key, shares)
        return there

    async def observe(self, only: Collection[RunKey] | None = None) -> Observation | Unknown:
        """Look at all members that may be there, or at those of some runs."""
        seen: Observation = await self._call(self._observe, only)
        return seen

    async def fence(self, node: str) -> bool:
        """Nodes are pretended here: what runs on them is killed one by one, and then nothing does."""
        empty: bool = await self._call(self._is_empty, node)
        return empty

    async def forget(self, key: RunKey) -> None:
        """Take the marks of a run away."""
        await self._call(self._forget, key)

    async def logs(
        self, key: RunKey, rank: int, *, server: bool = False, offset: int = 0, lines: int | None = None
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Return output from an offset on, or its last lines, as far as it is there."""
        path = await self._call(self._log_of, key, rank, server)
        if path is None:
            return
        if lines is not None:
            offset = await self._call(tail_offset, path, lines)
        while True:
            offset, data = await self._call(read_log, path, offset)
            if not data:
                return
            yield offset, data

    def dry_run(self, run: RunSpec) -> str:
        """Say which processes would start where."""
        lines = []
        for member in run.members:
            gpus = ",".join(map(str, member.gpus)) or "none"
            what = f"{len(member.gpus)} workers (GPUs {gpus}), {member.servers} servers"
            shares = f"{member.shares.cpus:g} CPUs, {member.shares.memory_gb:g} GB"
            lines.append(f"{member.node}: {what}, {shares}")
        return "\n".join(lines)

    def close(self) -> None:
        """Let go of threads; what runs goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def listen(self, hint: Callable[[], None]) -> None:
        """Call `hint` whenever a shim has something to say, until this is cancelled."""
        if not self.layout.notices.exists():
            os.mkfifo(self.layout.notices, 0o600)
        pipe = os.open(self.layout.notices, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        loop.add_reader(pipe, self._notice, pipe, hint)
        try:
            await asyncio.Event().wait()
        finally:
            loop.remove_reader(pipe)
            os.close(pipe)

    def _notice(self, pipe: int, hint: Callable[[], None]) -> None:
        for line in os.read(pipe, 65536).decode().split():
            if line.count(",") == 3:
                self.noticed.add(key_of(line).run)
        hint()

    # -- how it is done, in threads ----------------------------------------------------------------------

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    def _start(self, run: RunSpec) -> None:
        self._check_epoch()
        layout, key = self.layout, run.key
        for folder in (layout.job(key.job_id), layout.checkpoint(key.job_id), layout.attempt(key)):
            folder.mkdir(mode=PRIVATE, exist_ok=True)
        if (layout.attempt(key) / "kill").exists():
            self._never_start(run)
            return
        ports = self._ports(run)
        for member in run.members:
            member_key = MemberKey(*key, member.node)
            directory = layout.member(member_key)
            if any((directory / name).exists() for name in ("begun", "exit.json")):
                continue
            self._mark(member_key)
            shares = shares_record(self.limits, member.shares, self._cpus_in_use())
            limits = self.limits.record(layout.title(member_key))
            first_gpu = self._offsets.get(member.node, 0)
            record = run_record(run, member, ports, layout, limits, shares, self.settings, first_gpu)
            write_json(directory / "run.json", record)
            self._at("before spawn")
            self._spawn(directory)
            self._at("after spawn")

    def _mark(self, key: MemberKey) -> None:
        """Note that a member may be there, before anything of it is."""
        self.layout.member(key).mkdir(mode=PRIVATE, exist_ok=True)
        self.layout.mark(key).touch(mode=0o600)
        keys = self._marked.setdefault(key.run, [])
        if key not in keys:
            keys.append(key)

    def _never_start(self, run: RunSpec) -> None:
        """It was told to be gone first: show that nothing is there."""
        for member in run.members:
            key = MemberKey(*run.key, member.node)
            self._mark(key)
            self._bury(key)

    def _check_epoch(self) -> None:
        if (read_json(self.layout.root / "epoch.json") or {"epoch": 0})["epoch"] != self._epoch:
            raise FencedError("a newer controller has taken over")

    def _ports(self, run: RunSpec) -> list[int]:
        """Ports of the rendezvous and of the servers: chosen once per attempt."""
        path = self.layout.attempt(run.key) / "ports.json"
        with self._choosing:  # a start that is repeated may overtake the first one
            known = read_json(path)
            if known is None:
                known = {"ports": free_ports(1 + run.servers)}
                write_json(path, known)
        ports: list[int] = known["ports"]
        return ports

    def _cpus_in_use(self) -> list[list[int]]:
        """CPU sets of everything that runs, where affinity is all there is."""
        if self.limits.way != "affinity":
            return []
        found = []
        for keys in list(self._marked.values()):  # others may start meanwhile
            for key in keys:
                directory = self.layout.member(key)
                shares = read_json(directory / "shares.json") or (
                    read_json(directory / "run.json") or {}
                ).get("shares", {})
                if not (directory / "exit.json").exists():
                    found.append(shares.get("cpu_set", []))
        return found

    def _spawn(self, directory: Path) -> None:
        """Start a shim in a session of its own; if there is one it gives up by itself."""
        with open(directory / "shim.log", "ab") as log:
            shim = subprocess.Popen(
                [sys.executable, "-I", "-S", str(self._shim), str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env={"LANG": "C.UTF-8", "PATH": os.defpath},
            )
        self._shims.append(shim)

    def _leave_marker(self, key: RunKey, name: str, content: object) -> None:
        self._check_epoch()
        for member_key in self._marked.get(key, ()):
            directory = self.layout.member(member_key)
            if not (directory / name).exists():
                write_json(directory / name, content)
            _wake(directory)

    def _end(self, key: RunKey) -> None:
        self._check_epoch()
        attempt = self.layout.attempt(key)
        attempt.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        (attempt / "kill").touch(mode=0o600)  # before anything else: a start that comes late finds it
        for member_key in list(self._marked.get(key, ())):
            _wake(self.layout.member(member_key))
            self._bury(member_key)

    def _bury(self, key: MemberKey) -> None:
        """If no shim lives, end what it left and write down that nothing is there; else it does all that."""
        directory = self.layout.member(key)
        lock = take_lock(str(directory / "lock"))
        if lock is None:
            return
        try:
            if (directory / "exit.json").exists():
                return
            begun = (directory / "begun").exists()
            if begun and not self._clear(key):
                return
            report = {"started": begun, "processes": [], "oom_kills": 0, "lost": begun, "at": time.time()}
            write_json(directory / "exit.json", report)
        finally:
            os.close(lock)

    def _clear(self, key: MemberKey) -> bool:
        """Kill what a dead shim left; whether nothing is there any more."""
        title = self.layout.title(key)
        groups = self.limits.groups(title)
        leftovers = Leftovers(title, self.layout.member(key), groups.values())
        until = time.monotonic() + KILL_FOR_S
        while not leftovers.kill():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        for group in groups.values():
            if group.exists():
                group.rmdir()
        return True

    def _retune(self, key: RunKey, shares: Mapping[str, Shares]) -> bool:
        self._check_epoch()
        there = False
        for member_key in self._marked.get(key, ()):
            directory = self.layout.member(member_key)
            share = shares.get(member_key.node)
            if share is None or (directory / "exit.json").exists():
                continue
            write_json(directory / "shares.json", shares_record(self.limits, share, self._cpus_in_use()))
            _wake(directory)
            there = True
        return there

    def _observe(self, only: Collection[RunKey] | None) -> Observation:
        self._reap()
        runs = list(self._marked) if only is None else [key for key in only if key in self._marked]
        members: dict[MemberKey, Seen] = {}
        progress: dict[RunKey, Progress] = {}
        for run in runs:
            # What it says of itself is read after how it ended: so its last words are never missed.
            for key in self._marked.get(run, ()):  # it may be forgotten meanwhile
                members[key] = seen(self._place(key))
            over = any(members[key].ended for key in self._marked.get(run, ()) if key in members)
            if (said := self._said(run, over)) is not None:
                progress[run] = said
        return Observation(members, progress)

    def _reap(self) -> None:
        """Let go of shims that ended; meanwhile others may be started, or let go of these."""
        for shim in [each for each in self._shims if each.poll() is not None]:
            with contextlib.suppress(ValueError):
                self._shims.remove(shim)

    def _said(self, run: RunKey, over: bool) -> Progress | None:
        """What a job said last; until it is over its file is read again only if it seems to have changed."""
        path = self._place(run)
        try:
            about = os.stat(path)
        except OSError:
            return None
        known, changed = self._progress.get(run), (about.st_mtime_ns, about.st_ino, about.st_size)
        if over or known is None or known[0] != changed:
            known = self._progress[run] = changed, progress_of(Path(path))
        return known[1]

    def _place(self, key: RunKey | MemberKey) -> str:
        """Return where a member works, or a run says how far it is; that is asked for all the time."""
        place = self._places.get(key)
        if place is None:
            path = self.layout.member(key) if isinstance(key, MemberKey) else self.layout.progress(key)
            place = self._places[key] = str(path)
        return place

    def _is_empty(self, node: str) -> bool:
        here = [key for keys in list(self._marked.values()) for key in keys if key.node == node]
        return all((self.layout.member(key) / "exit.json").exists() for key in here)

    def _forget(self, key: RunKey) -> None:
        self._check_epoch()
        for member_key in self._marked.get(key, ()):
            self.layout.mark(member_key).unlink(missing_ok=True)
            self._places.pop(member_key, None)
        self._marked.pop(key, None)
        self._places.pop(key, None)
        self._progress.pop(key, None)

    def _log_of(self, key: RunKey, rank: int, server: bool) -> Path | None:
        """Find the node on which a process runs or ran."""
        try:
            nodes = [each for each in self.layout.attempt(key).iterdir() if each.is_dir()]
        except FileNotFoundError:
            return None
        name = self.layout.log(MemberKey(*key, ""), rank, server=server).name
        return next((node / name for node in nodes if (node / name).exists()), None)


def _wake(directory: Path) -> None:
    """Tell a shim that there is something new to read; it looks now and then anyway."""
    try:
        pipe = os.open(directory / "wake", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(pipe, b"!")
    except OSError:
        pass
    finally:
        os.close(pipe)
