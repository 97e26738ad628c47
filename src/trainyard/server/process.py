"""The life of a controller's process: it finds everything again, serves, and leaves things in order."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import socket
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from trainyard._version import __version__
from trainyard.errors import TrainyardError
from trainyard.server import network, place
from trainyard.server.opening import Start, bind, opened, store_url

if TYPE_CHECKING:
    from trainyard.live.backends.local.backend import LocalBackend
    from trainyard.live.daemon import Live
    from trainyard.live.store.log import Store
    from trainyard.model.cluster import Cluster
    from trainyard.server.desk import Desk
    from trainyard.server.serving import Serving

POLICY = "srtf+steepest+tune"


def run(start: Start) -> None:
    """Be a controller until somebody ends it."""
    place.prepare(start.data)
    url = store_url(start)
    with contextlib.closing(bind(start, url)) as taken, opened(url) as store:
        asyncio.run(_Process(start, store, taken).run())


class _Process:
    """One life, in the event loop."""

    def __init__(self, start: Start, store: Store, taken: socket.socket) -> None:
        self.start, self.store, self.taken = start, store, taken
        self.url = network.url_of(taken)
        self.notes: list[str] = []
        self._asked = 0  # how often somebody wanted it to end
        self._checkpoint = False
        self._ends, self._hurries = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Find everything again, serve, and end in order."""
        from trainyard.live.daemon import Live, make_controller
        from trainyard.live.machine import this_machine

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._down, False)
        machine, found = this_machine()
        made = make_controller(self.store, self.start.options, (machine, POLICY))
        controller, undone, starts, changes = made
        backend = self._backend(controller.yard.cluster)
        self._note(f"{found}; limits: {backend.limits}; {_trust()}")
        self._notes(changes)
        live = Live(controller, backend)
        try:
            async with live.running(undone, starts):
                await self._serve(live, str(backend.limits))
        finally:
            backend.close()
        self._complain(live.shell.failure)

    def _backend(self, cluster: Cluster) -> LocalBackend:
        from trainyard.live.backends.local.backend import LocalBackend
        from trainyard.live.machine import real_gpus

        offsets, first = {}, 0
        for node in cluster.nodes if real_gpus() else ():
            offsets[node.node_id], first = first, first + node.gpus
        settings = self.start.options.settings
        return LocalBackend(self.start.data, self.store.store_id, self.store.epoch, settings, offsets=offsets)

    def _notes(self, changes: list[str]) -> None:
        for change in changes:
            self._note(change)
        if not network.is_loopback(self.taken):
            self._note(f"{self.url} can be reached from elsewhere: tokens and jobs travel in clear")

    def _note(self, text: str) -> None:
        """Say something that `status` says too."""
        self.notes.append(text)
        say(text)

    def _complain(self, failure: BaseException | None) -> None:
        if failure is None:
            return
        if not isinstance(failure, TrainyardError):
            traceback.print_exception(failure)
        raise TrainyardError(f"the controller ended: {failure}") from failure

    # -- serving ----------------------------------------------------------------------

    async def _serve(self, live: Live, limits: str) -> None:
        # It takes a while to load; what runs is looked after meanwhile.
        serving: Any = await asyncio.to_thread(importlib.import_module, "trainyard.server.serving")
        desk = serving.make_desk(live, self.start.models, self.notes, limits, self._down)
        token = place.keep_token(self.start.data)
        served: Serving = serving.Serving(desk, token, self.taken, self.start.host)
        try:
            await served.begin()
            place.write_server_file(self.start.data, self._about(token))
            print(f"ready {self.url}", flush=True)
            await _first(self._ends.wait(), live.stopped.wait(), served.over.wait())
            desk.leaving.set()
            if not live.stopped.is_set():
                await _first(self._settle(live, desk), live.stopped.wait(), self._hurries.wait())
        finally:
            await served.end()
            place.remove_server_file(self.start.data, os.getpid())

    def _about(self, token: str) -> place.ServerFile:
        ids = self.store.store_id, self.store.epoch
        host = socket.gethostname()
        return place.ServerFile(self.url, host, os.getpid(), token, __version__, *ids, time.time())

    # -- going down ----------------------------------------------------------------------

    def _down(self, checkpoint: bool) -> None:
        """Begin to end; whoever asks a second time does not want to wait."""
        if self._ends.is_set():
            self._hurries.set()
        self._checkpoint |= checkpoint
        self._ends.set()

    async def _settle(self, live: Live, desk: Desk) -> None:
        """Decide no more, let everything save its work if that was asked for, and write down the core."""
        from trainyard.server.leaving import last_words, running

        before = running(live.controller.published)
        if self._checkpoint:
            say(f"{len(before)} jobs save their work and stop")
            await live.pause(stop=True)
        else:
            with contextlib.suppress(
                TimeoutError
            ):  # of a store that cannot be written: it has all that counts
                await asyncio.wait_for(live.pause(stop=False), live.controller.settings.store_s)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(live.write_snapshot(), live.controller.settings.store_s)
        desk.last_words = last_words(live.controller.published, before)


def say(text: str) -> None:
    """Tell the log."""
    print(f"trainyard: {text}", file=sys.stderr, flush=True)


def _trust() -> str:
    """Say whom jobs are separated from."""
    user = place.user_name()
    return f"one trust domain: all jobs run as {user} and can read what {user} can"


async def _first(*waits: Any) -> None:
    """Wait for the first of several things, and say so if it went wrong."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
