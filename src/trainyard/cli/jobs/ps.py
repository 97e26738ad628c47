"""`trainyard ps`: jobs, one a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Job, Link
from trainyard.cli.client.options import with_link
from trainyard.errors import InputError, did_you_mean

STATES = ("waiting", "running", "stopping", "killing", "held", "done", "failed", "cancelled")


@with_link
def ps(
    all_: Annotated[
        bool, typer.Option("-a", "--all", help="Also those that ended more than an hour ago.")
    ] = False,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.", metavar="S")] = None,
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """List jobs: those that are not over and those that ended in the last hour."""
    from trainyard.cli.shown import table
    from trainyard.cli.shown.as_json import print_json
    from trainyard.cli.shown.job import HEADINGS, row

    if state is not None and state not in STATES:
        raise InputError(f"--state '{state}': there is no such state{did_you_mean(state, STATES)}")
    jobs = list(_jobs(link(), all_, state))
    if json_:
        print_json(jobs)
    else:
        table.show(HEADINGS, [row(job) for job in jobs])


def _jobs(link: Link, all_: bool, state: str | None) -> Iterator[Job]:
    """Ask for all pages."""
    after = None
    while True:
        page = link.get("/jobs", all=int(all_), state=state, after=after)
        yield from page["jobs"]
        after = page["next"]
        if after is None:
            return
