"""`trainyard cancel`: end a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import JobName, with_link


@with_link
def cancel(
    job: JobName,
    now: Annotated[bool, typer.Option("--now", help="Kill it; it saves nothing.")] = False,
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """End a job: it may save its work, unless --now is given."""
    from trainyard.cli.jobs.changing import change

    change(link(), job, "cancel", json_, now=now)
