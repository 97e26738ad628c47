"""`trainyard release`: let a held job go on."""

from __future__ import annotations

from collections.abc import Callable

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import JobName, with_link


@with_link
def release(job: JobName, *, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Let a held job go on."""
    from trainyard.cli.jobs.changing import change

    change(link(), job, "release", json_)
