"""`trainyard hold`: keep a job from running."""

from __future__ import annotations

from collections.abc import Callable

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import JobName, with_link


@with_link
def hold(job: JobName, *, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Stop a job, which saves its work, and keep it from starting until it is released."""
    from trainyard.cli.jobs.changing import change

    change(link(), job, "hold", json_)
