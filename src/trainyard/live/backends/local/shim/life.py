"""The shim: one small process per attempt and node that starts the workers and outlives the controller.

    python -I -S shim.pyz DIRECTORY

It runs from a file of its own (`archive.py`) and needs nothing but the standard library, so that an upgrade
of Trainyard does not disturb what runs. All it knows stands in its directory:

    run.json     what to start (written before the shim)
    lock         held by the shim alone, as long as it lives
    begun        written once the lock is held: no other shim ever starts anything here
    alive        locked by the shim and, through inheritance, by its workers and their children
    stop, kill   markers: end gracefully, with a time of grace; end at once (also ../kill, for all nodes)
    end          marker: all workers of the job are done, so servers have to go
    shares.json  CPUs and memory, if they are not as in run.json any more
    wake         a pipe: a byte in it says that there is a new marker
    shim.json    written when all processes are started
    first.json   written when the first process ended badly: how
    workers.json written when all workers are over, but servers still run
    exit.json    written at the very end, when nothing of the run is left; then nothing ever starts here again
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any

from .files import begins, notify, read_json, take_lock, wrote
from .group import Group
from .log import Log
from .process import LIBC, Process, become, descendants, kill, pin

POLL_S = 2.0  # markers are looked for so often even if nobody wakes us
AGAIN_S = 1.0  # before a file is written again for which there was no room
PR_SET_CHILD_SUBREAPER = 36


def main(directory: str) -> int:
    """Run what the directory says, once and never again."""
    os.chdir(directory)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    lock = take_lock("lock")
    if lock is None or os.path.exists("exit.json") or not begins():
        return 0  # another shim has it, or had it
    with open("run.json", encoding="utf-8") as file:
        run = json.load(file)
    killed, stopped = os.path.exists("kill") or os.path.exists("../kill"), os.path.exists("stop")
    if killed or stopped:  # nothing is started only to be ended
        ends = {"stop_asked": stopped and not killed, "killed": killed, "at": time.time()}
        report = {"started": False, "processes": [], "oom_kills": 0, **ends}
    else:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        report = Shim(run).run()
    while not wrote("exit.json", report):  # however long it takes: nobody else knows how this ended
        if not os.stat(".").st_nlink:
            return 1  # somebody deleted the directory, so nobody will ever ask
        time.sleep(AGAIN_S)
    notify(run)
    return 0


class Shim:
    """The life of one run on one node."""

    def __init__(self, run: dict[str, Any]) -> None:
        self.spec = run
        self.group = Group(run["limits"])
        alive = take_lock("alive")
        assert alive is not None  # only who has the other lock takes it
        self.alive = alive
        self.processes: list[Process] = []
        self.error: dict[str, Any] | None = None  # why a process could not be started
        self.kill_at: float | None = None  # when patience ends
        self.stop_asked = self.grace_over = self.killed = False
        self.grace_s = 0.0  # that it has to stop
        self.ending = bool(run["alone"])  # with all workers here, servers need not wait for others
        self.unwritten: dict[str, Any] = {}  # files that are still to be written
        self.first: dict[str, Any] | None = None  # the worker that ended badly first
        if not os.path.exists("wake"):
            os.mkfifo("wake")
        self.wake = os.open("wake", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.child, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)

    def run(self) -> dict[str, Any]:
        """Start everything, wait for its end and clear up; return how it ended."""
        self._share()
        self._start()
        if self.error is None:
            pids = [process.pid for process in self.processes]
            self._say("shim.json", {"pid": os.getpid(), "pids": pids, "at": time.time()})
        if not any(process.works for process in self.processes):
            self._say("workers.json", self._report())
        self._look()
        while any(process.end is None for process in self.processes):
            self._wait()
        memory = {"oom_kills": self.group.oom_kills(), "memory": self.group.memory()}
        self._clear_up()
        for process in self.processes:
            self._read(process)
        return self._report() | memory

    def _say(self, name: str, content: dict[str, Any]) -> None:
        """Write a file for the controller, later if there is no room now."""
        if not wrote(name, content):
            self.unwritten[name] = content
            return
        self.unwritten.pop(name, None)
        notify(self.spec)

    def _report(self) -> dict[str, Any]:
        return {
            "started": self.error is None,
            "processes": [process.end for process in self.processes],
            "first": self.first,
            "error": self.error,
            "oom_kills": 0,
            "stop_asked": self.stop_asked,
            "grace_over": self.grace_over,
            "grace_s": self.grace_s,
            "killed": self.killed,
            "at": time.time(),
        }

    # -- starting ----------------------------------------------------------------------

    def _start(self) -> None:
        for spec in self.spec["processes"]:
            if self.error is None:
                try:
                    self._fork(spec)
                except OSError as error:  # too many processes or files: later there may be room
                    self.error = {"step": "fork", "what": "a process cannot be started"}
                    self.error |= {"why": error.strerror, "errno": error.errno}
        if self.error is not None:
            self._signal(signal.SIGKILL)

    def _fork(self, spec: dict[str, Any]) -> None:
        """Start one process; what goes wrong before it is another program comes back through a pipe."""
        log = Log(spec["log"], self.spec["log_bytes"] // max(len(self.spec["processes"]), 1))
        output, theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(output, False)
        said, says = os.pipe2(os.O_CLOEXEC)
        shim = os.getpid()
        pid = os.fork()
        if pid == 0:
            become(spec, self.group, theirs, says, self.alive, shim, self.spec.get("cpu_set"))
        os.close(theirs)
        os.close(says)
        with os.fdopen(said, "rb") as pipe:
            trouble = pipe.read()
        process = Process(spec, pid, output, log)
        self.processes.append(process)
        if trouble:
            self.error = json.loads(trouble)

    # -- waiting ----------------------------------------------------------------------

    def _wait(self) -> None:
        """Sleep until there is output, a new marker or an end, or it is time to lose patience."""
        poller = select.poll()
        for descriptor in (self.wake, self.child):
            poller.register(descriptor, select.POLLIN)
        readers = {process.output: process for process in self.processes if process.output >= 0}
        for descriptor in readers:
            poller.register(descriptor, select.POLLIN)
        timeout = POLL_S if self.kill_at is None else min(max(self.kill_at - time.monotonic(), 0.0), POLL_S)
        for descriptor, _ in poller.poll(timeout * 1000 + 1):
            if descriptor in readers:
                self._read(readers[descriptor], once=True)
            else:
                _drain(descriptor)
        self._reap()
        self._look()
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.kill_at = None
            self.grace_over |= self.stop_asked and not self.killed and not self._workers_over()
            self._signal(signal.SIGKILL)
        for name, content in list(self.unwritten.items()):
            self._say(name, content)

    def _read(self, process: Process, once: bool = False) -> None:
        """Take over output; at the end only what is there, for a child may keep the pipe open."""
        while process.output >= 0:
            try:
                data = os.read(process.output, 65536)
            except BlockingIOError:
                return
            if not data:
                os.close(process.output)
                process.output = -1
            else:
                process.log.write(data)
            if once:
                return

    def _reap(self) -> None:
        """See who ended, orphans of our workers included."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for process in self.processes:
                if process.pid == pid and process.end is None:
                    process.over(status)
                    self._ended(process)

    def _ended(self, process: Process) -> None:
        """One process is over: if it ended badly the others have to stop; after the workers, servers go."""
        end = process.end
        assert end is not None
        fine = end["code"] == 0 or (end["code"] == 75 and self.stop_asked)
        counts = process.works or not (self.ending and self._workers_over())
        if not fine and self.first is None and counts:
            self._read(process)
            self.first = process.ended_first()
            self._say("first.json", self.first)
            if self.kill_at is None:
                self._signal(signal.SIGTERM)
                self.kill_at = time.monotonic() + self.spec["kill_s"]
        if self._workers_over() and not self._all_over():
            if self.ending or self.first is not None:
                self._end_servers()
            elif process.works:
                self._say("workers.json", self._report())

    def _workers_over(self) -> bool:
        return all(process.end is not None for process in self.processes if process.works)

    def _all_over(self) -> bool:
        return all(process.end is not None for process in self.processes)

    # -- ending ----------------------------------------------------------------------

    def _look(self) -> None:
        """Do what new markers say."""
        if not self.killed and (os.path.exists("kill") or os.path.exists("../kill")):
            self.killed = True
            self._signal(signal.SIGKILL)
        if not self.stop_asked and not self.killed and (told := read_json("stop")) is not None:
            self.stop_asked = True
            self._signal(signal.SIGTERM, workers_only=True)
            self.grace_s = float(told["grace_s"])
            self.kill_at = time.monotonic() + self.grace_s
        if not self.ending and os.path.exists("end"):
            self.ending = True
            if self._workers_over():
                self._end_servers()
        self._share()

    def _end_servers(self) -> None:
        self._signal(signal.SIGTERM)
        if self.kill_at is None:
            self.kill_at = time.monotonic() + self.spec["kill_s"]

    def _share(self) -> None:
        """Set CPUs and memory as they should be now."""
        shares = read_json("shares.json") or self.spec["shares"]
        if shares != self.spec.get("shared"):
            self.spec["shared"] = shares
            self.group.share(shares.get("cpus"), shares.get("memory_bytes"))
            if (cpu_set := shares.get("cpu_set")) is not None:
                self.spec["cpu_set"] = cpu_set
                for pid in self._everything():
                    pin(pid, cpu_set)

    def _signal(self, number: int, workers_only: bool = False) -> None:
        """Signal the processes that we started, and not their groups: data loaders would crash."""
        for process in self.processes:
            if process.end is None and (process.works or not workers_only):
                kill(process.pid, number)

    def _everything(self) -> list[int]:
        """All processes of the run: those in its groups and our descendants."""
        return sorted({*self.group.processes(), *descendants(os.getpid())})

    def _clear_up(self) -> None:
        """End whatever the workers left behind, until nothing is there."""
        while pids := self._everything():
            for pid in pids:
                kill(pid, signal.SIGKILL)
            self._reap()
            if self._everything():
                time.sleep(0.01)
        self.group.remove()


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass
