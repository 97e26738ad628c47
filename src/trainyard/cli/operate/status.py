"""`trainyard status`: how the controller, its store and its backend are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import with_link


@with_link
def status(*, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Say how the controller, its store and its backend are."""
    from trainyard.cli.shown.as_json import print_json

    found = link().get("/status")
    if json_:
        print_json(found)
        return
    for line in lines(found):
        print(line)


def lines(status: Mapping[str, Any]) -> Iterator[str]:
    """Describe a controller."""
    from trainyard.cli.shown.times import clock, long

    now = status["now_s"]
    yield (
        f"controller {status['version']} on {status['host']}, pid {status['pid']}, "
        f"up {long(now - status['started_s'])}, epoch {status['epoch']}; "
        f"store {_store(status['store'])}; backend {_backend(status['backend'])}"
    )
    yield f"policy {status['policy']}{' (paused)' if status['paused'] else ''}; jobs: {_jobs(status['jobs'])}"
    if not any(status["limits"] in note for note in status["notes"]):
        yield f"limits: {status['limits']}"
    if refused := status["refused"]:
        count = status["plans_refused"]
        yield f"{count} plans refused, the last at {clock(refused['time_s'], now)}: {refused['why']}"
    if status["clock_ahead_s"] > 0:
        yield f"the clock of this machine went back; times are {long(status['clock_ahead_s'])} ahead of it"
    yield from status["notes"]


def _store(store: Mapping[str, Any]) -> str:
    size = f" ({store['bytes'] / 1e6:,.1f} MB)" if store["bytes"] is not None else ""
    trouble = f", TROUBLE: {store['trouble']}" if store["trouble"] else ""
    return f"{store['kind']}{size}{trouble}"


def _backend(backend: Mapping[str, Any]) -> str:
    from trainyard.cli.shown.times import long

    nodes = backend["nodes"]
    silent = backend["silent_s"]
    seen = f"no answer for {long(silent)}: {backend['silence']}" if silent else "answers"
    trouble = "".join(f", {what}: {why}" for what, why in backend["trouble"].items())
    return f"{backend['name']}, {nodes} node{'' if nodes == 1 else 's'}, {seen}{trouble}"


def _jobs(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count) or "none"
