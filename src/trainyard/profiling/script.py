"""Running a training script: read its lines as they come, and end it for certain."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO

from trainyard.errors import InputError
from trainyard.profiling.share import CpuShare, environment, on_cpus

GRACE_S = 3.0
LOOK_S = 0.2
CHUNK = 65536
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BREAK = re.compile(rb"[\r\n]+")  # progress bars go back instead of on


class Script:
    """A command that runs with a share of the CPUs, in a process group of its own, until the block ends."""

    def __init__(self, command: Sequence[str], share: CpuShare) -> None:
        self.name = shlex.join(command)
        self.complaint = ""  # the last line on stderr
        self._command, self._share = command, share
        self._started = self.paused = False

    def __enter__(self) -> Script:
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> None:
        """Start it; whatever happens, `end` must follow."""
        with _signals_held():
            self._process = self._launched()
            self.group, self._started = self._process.pid, True

    def pause(self) -> None:
        """Stop it until it goes on."""
        self.paused = True
        self._signal(signal.SIGSTOP)
        self._share.quota.pause(self.group, time.monotonic())

    def go_on(self) -> None:
        """Let it run again, if its quota does."""
        self.paused = False
        if not self._share.quota.stopped:
            self._signal(signal.SIGCONT)

    def _launched(self) -> subprocess.Popen[bytes]:
        name = self._command[0]
        try:
            with on_cpus(self._share.numbers):  # which a child has from the thread that forks
                return subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**os.environ, "PYTHONUNBUFFERED": "1", **environment(self._share.cpus)},
                    start_new_session=True,
                )
        except FileNotFoundError:
            raise InputError(f"command '{name}' not found; check its name and the PATH") from None
        except OSError as error:
            raise InputError(f"command '{name}' cannot be run: {error.strerror}; check it") from None

    def end(self) -> None:
        """End it and all that it started, if it was started."""
        if not self._started:
            return
        try:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # else it could not end if it is paused or its quota is used up
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._started = False
            for pipe in self._pipes():
                pipe.close()

    def lines(self) -> Iterator[str]:
        """Lines of stdout and stderr as they come until the script ends; now and then an empty one."""
        with selectors.DefaultSelector() as selector:
            for pipe in self._pipes():
                selector.register(pipe, selectors.EVENT_READ, bytearray())
            ended = False
            while not ended:
                over = self._process.poll() is not None
                ready = selector.select(0 if over else self._wait_s())
                for key, _ in ready:
                    yield from self._read(selector, key)
                yield ""
                ended = over and not ready

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> Iterator[str]:
        data, rest = os.read(key.fd, CHUNK), key.data
        if not data:
            selector.unregister(key.fileobj)
        rest += data
        *whole, last = BREAK.split(bytes(rest))
        rest[:] = last if data else b""
        for line in filter(None, whole if data else [*whole, last]):
            text = line.decode(errors="replace").strip()
            if key.fileobj is self._process.stderr:
                self.complaint = text or self.complaint
            yield text

    def ending(self) -> str:
        """Say how the script, which has ended, did so; empty if all was well."""
        code = self._process.wait()
        if code == 0:
            return ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        return f"{how}: {self.complaint}" if self.complaint else f"{how} without a word on stderr"

    def _wait_s(self) -> float:
        if self.paused:
            return 0.0
        return min(LOOK_S, self._share.quota.keep(self.group, time.monotonic()))

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let signals wait until the block is over: one inside Popen would leave an unknown child behind."""
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other one is interrupted
        before = {kind: handler for kind in ENDING if callable(handler := signal.getsignal(kind))}
    try:
        for kind in before:
            signal.signal(kind, lambda number, _: came.append(number))
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
    for number in came:
        before[signal.Signals(number)](number, None)
