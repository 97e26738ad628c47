"""The API over HTTP, in the controller's event loop. Loading this takes a while."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil

import uvicorn
from sqlalchemy import make_url

from trainyard.live.daemon import Live
from trainyard.model.profile import Profile
from trainyard.server.app import make_app
from trainyard.server.desk import Desk

LOOK_S = 0.01


def make_desk(
    live: Live,
    models: Mapping[str, Profile],
    notes: Sequence[str],
    limits: str,
    down: Callable[[bool], None],
) -> Desk:
    """Return what answers are made from."""
    url = make_url(live.controller.store.engine.url).render_as_string(hide_password=True)
    return Desk(live, url, notes, limits, models, down=down)


class _Server(uvicorn.Server):
    """Leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are not its business."""
        yield


class Serving:
    """The server, from its first answer to its last."""

    def __init__(self, desk: Desk, token: str, taken: socket.socket, host: str) -> None:
        app = make_app(desk, token, (host, socket.gethostname()))
        config = uvicorn.Config(
            app,
            log_level="critical",  # what fails is told by the application
            proxy_headers=False,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=ceil(desk.controller.settings.answer_s),
        )
        self._desk, self._taken, self._server = desk, taken, _Server(config)
        self.over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Answer from now on."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._taken]))
        self._task.add_done_callback(lambda _: self.over.set())
        while not self._server.started and not self._task.done():
            await asyncio.sleep(LOOK_S)

    async def end(self) -> None:
        """Let streams say goodbye, finish what is being answered, and listen no more."""
        self._desk.closing.set()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
