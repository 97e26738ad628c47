"""The controller itself, its nodes and its policy."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request

from trainyard._version import __version__
from trainyard.core.events import NodeDrained, NodeUndrained, PolicyChanged
from trainyard.errors import InputError
from trainyard.live.clock import RealClock
from trainyard.server.body import read_object
from trainyard.server.desk import Desk
from trainyard.server.faults import FieldError, Refusal
from trainyard.server.reply import Reply
from trainyard.server.submission.values import flag, line
from trainyard.state.lifecycle import WITH_PROCESSES


def routes(desk: Desk) -> APIRouter:
    """Return the paths that are not about jobs."""
    router = APIRouter()

    @router.get("/status")
    async def status() -> Reply:
        return Reply(await asyncio.to_thread(status_of, desk))

    @router.get("/nodes")
    async def nodes() -> Reply:
        return Reply({"nodes": desk.controller.published.nodes})

    @router.post("/nodes/{node}/drain")
    async def drain(node: str, request: Request) -> Reply:
        given = await read_object(request, ("reason",))
        reason = "" if given.get("reason") is None else line("reason", given["reason"])
        return await change(node, NodeDrained, f"{desk.owner}: {reason}" if reason else desk.owner)

    @router.post("/nodes/{node}/undrain")
    async def undrain(node: str, request: Request) -> Reply:
        await read_object(request, ())
        return await change(node, NodeUndrained, desk.owner)

    async def change(node: str, event: type[NodeDrained | NodeUndrained], by: str) -> Reply:
        _node(desk, node)
        await desk.tell(lambda now: event(now, node), by)
        return Reply(_node(desk, node))

    @router.get("/policy")
    async def policy() -> Reply:
        return Reply({"policy": desk.controller.published.status["policy"]})

    @router.post("/policy")
    async def set_policy(request: Request) -> Reply:
        name = line("policy", (await read_object(request, ("policy",))).get("policy"))
        await asyncio.to_thread(_check_policy, desk, name)
        await desk.tell(lambda now: PolicyChanged(now, name), desk.owner)
        return Reply({"policy": name})

    @router.post("/down")
    async def down(request: Request) -> Reply:
        given = await read_object(request, ("checkpoint",))
        checkpoint = flag("checkpoint", given.get("checkpoint", False))
        running = sum(view["state"] in WITH_PROCESSES for view in desk.controller.published.jobs())
        desk.down(checkpoint)
        return Reply({"running": running}, 202)

    return router


def _node(desk: Desk, name: str) -> dict[str, Any]:
    for node in desk.controller.published.nodes:
        if node["node"] == name:
            return node
    raise Refusal(404, f"there is no node {name[:40]}; trainyard nodes shows them")


def _check_policy(desk: Desk, name: str) -> None:
    try:
        desk.controller.decider.policy(name)
    except InputError as error:
        raise FieldError("policy", str(error)) from None


def status_of(desk: Desk) -> dict[str, Any]:
    """Return how the controller is; it looks at files."""
    controller, live = desk.controller, desk.live
    published, trouble = controller.published, live.shell.store_trouble
    clock = controller.clock
    refused = published.refused
    return {
        "version": __version__,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "epoch": controller.store.epoch,
        "store": {
            "url": desk.store_url,
            "kind": controller.store.engine.dialect.name,
            "bytes": _bytes_of(controller.store.engine.url.database, controller.store.engine.dialect.name),
            "trouble": None if trouble is None else trouble[1],
            "trouble_s": 0.0 if trouble is None else time.monotonic() - trouble[0],
        },
        "backend": {
            "name": live.backend.name,
            "nodes": len(published.nodes),
            "silent_s": live.eyes.silent_s,
            "silence": live.eyes.silence,
            "trouble": dict(live.hands.trouble),
        },
        "limits": desk.limits,
        "policy": published.status["policy"],
        "paused": published.status["paused"],
        "jobs": Counter(view["state"] for view in published.jobs()),
        "events": published.status["events"],
        "plans_refused": published.status["plans_refused"],
        "refused": None if refused is None else {"time_s": refused[0], "why": refused[1]},
        "clock_ahead_s": clock.ahead_s() if isinstance(clock, RealClock) else 0.0,
        "started_s": desk.started_s,
        "now_s": clock.now(),
        "notes": list(desk.notes),
    }


def _bytes_of(database: str | None, kind: str) -> int | None:
    """The size of a store that is a file, with what is not written into it yet."""
    if kind != "sqlite" or not database:
        return None
    files = (Path(database), Path(f"{database}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
