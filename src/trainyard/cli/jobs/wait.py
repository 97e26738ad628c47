"""`trainyard wait`: until jobs are over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Job, Link
from trainyard.cli.client.options import with_link
from trainyard.cli.usage import not_negative


@with_link
def wait(
    jobs: Annotated[
        list[str], typer.Argument(help="Ids, names, unique beginnings, or - for the last.", metavar="JOB")
    ],
    timeout: Annotated[float | None, o.amount("Seconds; then it ends with 1.")] = None,
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """Wait until all these jobs are over; 0 if all are done, 1 otherwise."""
    from trainyard.cli.jobs.run import ended, leave
    from trainyard.cli.shown.as_json import print_json

    not_negative("--timeout", timeout)
    asked = link()
    found = {(job := asked.job(name))["job_id"]: job for name in jobs}
    _until_over(asked, found, timeout)
    for job in found.values():
        if job["state"] != "done":
            print(ended(job), file=sys.stderr)
    if json_:
        print_json(list(found.values()))
    leave(int(any(job["state"] != "done" for job in found.values())))


def _until_over(link: Link, jobs: dict[str, Job], timeout: float | None) -> None:
    """Keep the jobs as they are now until they are over, or the time is."""
    import time

    from trainyard.cli.client.following import follow
    from trainyard.cli.shown.job import OVER

    def look() -> bool:
        for job_id, job in jobs.items():
            if job["state"] not in OVER:
                jobs[job_id] = link.get(f"/jobs/{job_id}")
        return all(job["state"] in OVER for job in jobs.values())

    until_s = None if timeout is None else time.monotonic() + timeout
    follow(link, [f"job:{job_id}" for job_id in jobs], look, until_s)
