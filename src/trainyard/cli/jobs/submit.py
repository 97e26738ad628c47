"""`trainyard submit`: put a job into the queue."""

from __future__ import annotations

from collections.abc import Callable

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import with_link
from trainyard.cli.jobs.submission import Body, with_submission


@with_link
@with_submission
def submit(*, body: Callable[[], Body], link: Callable[[], Link], json_: o.Json = False) -> None:
    """Submit a job and print its id."""
    from trainyard.cli.jobs.sending import send
    from trainyard.cli.shown.as_json import print_json

    job = send(link(), body())
    print_json(job) if json_ else print(job["job_id"])
