"""`trainyard down`: end a controller, and wait until it is gone."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import with_link
from trainyard.errors import TrainyardError, UnreachableError

GONE_S = 60.0  # a process that said goodbye may take so long to end
SILENT = "the controller is down, but did not say what became of its jobs; `trainyard up` finds them again"
UNSAVED = "stopped without saving: the last checkpoint counts"
WORDS = {
    "go_on": ("goes on; `trainyard up` finds it again", "go on; `trainyard up` finds them again"),
    "saved": ("saved and waits", "saved and wait"),
    "not_saved": (UNSAVED, UNSAVED),
    "over": ("ended", "ended"),
}


@with_link
def down(
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Let all jobs save their work and stop first.")
    ] = False,
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """End the controller; its jobs go on without it, or save their work and wait for the next one."""
    from trainyard.cli.shown.as_json import print_json

    words = _end(link(), checkpoint)
    if json_:
        print_json(words or {})
    else:
        print(SILENT if words is None else said(words))


def _end(link: Link, checkpoint: bool) -> dict[str, int] | None:
    """Have it end; return what became of its jobs, if it says so."""
    status = link.get("/status")
    process = _process(status)
    try:
        with link.events("yard") as events:
            running = link.post("/down", {"checkpoint": checkpoint})["running"]
            if checkpoint and running:
                print(f"{_jobs(running)} may save now; this waits for them", file=sys.stderr)
            words: dict[str, int] | None = next(json.loads(data) for name, data in events if name == "bye")
    except UnreachableError:
        if process is None:
            raise
        words = None  # it ended without a word, but it ended
    _await(process, status["pid"])
    return words


def _process(status: Mapping[str, Any]) -> int | None:
    """Get hold of the controller's process, if it is one of this machine."""
    if status["host"] != socket.gethostname():
        return None
    with contextlib.suppress(OSError):
        return os.pidfd_open(status["pid"])
    return None


def _await(process: int | None, pid: int) -> None:
    if process is None:
        return
    with open(process, "rb", buffering=0) as handle:
        if not select.select([handle], [], [], GONE_S)[0]:
            raise TrainyardError(f"the controller (pid {pid}) said goodbye, but is still there")


def said(words: Mapping[str, int]) -> str:
    """Say what became of the jobs that ran."""
    parts = [_part(words[word], *texts) for word, texts in WORDS.items() if words.get(word)]
    return "; ".join(parts) or "the controller is down; no job ran"


def _part(count: int, of_one: str, of_many: str) -> str:
    return f"{_jobs(count)} {of_one if count == 1 else of_many}"


def _jobs(count: int) -> str:
    return f"{count} job{'s' if count != 1 else ''}"
