"""`trainyard story`: what happened to a job, from its submission on."""

from __future__ import annotations

from collections.abc import Callable

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import JobName, with_link


@with_link
def story(job: JobName, *, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Tell all that happened to a job."""
    import time

    from trainyard.cli.shown.as_json import print_json
    from trainyard.cli.shown.plain import one_line
    from trainyard.cli.shown.times import clock

    asked = link()
    told = asked.get(f"/jobs/{asked.job(job)['job_id']}/story")["story"]
    if json_:
        print_json(told)
        return
    for entry in told:
        print(f"{clock(entry['time_s'], time.time(), seconds=True)}  {one_line(entry['text'])}")
