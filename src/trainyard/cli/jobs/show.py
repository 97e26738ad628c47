"""`trainyard show`: all that is known of one job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainyard.cli import options as o
from trainyard.cli.client.link import Job, Link
from trainyard.cli.client.options import JobName, with_link


@with_link
def show(job: JobName, *, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Show one job: what it has, how far it is, its limits."""
    from trainyard.cli.shown.as_json import print_json

    asked = link()
    found = asked.get(f"/jobs/{asked.job(job)['job_id']}")
    if json_:
        print_json(found)
        return
    types = {node["node"]: node["gpu_type"] for node in asked.get("/nodes")["nodes"]}
    for line in lines(found, types, asked.get("/status")["now_s"]):
        print(line)


def lines(job: Job, types: Mapping[str, str], now_s: float) -> Iterator[str]:
    """Describe a job; `types` are the GPU types of nodes."""
    from trainyard.cli.shown import job as said
    from trainyard.cli.shown.plain import one_line

    yield said.headline(job, types, now_s)
    if job["reason"]:
        label = "reason" if said.why(job) else "before that"
        yield f"{label}: {one_line(job['reason'])} ({job['reason_code']})"
    if progress := said.progress(job, now_s):
        yield progress
    yield f"limits: {said.limits(job)}"
    yield f"user {job['user']}, tenant {job['tenant'] or '-'}, priority {job['priority']}"
    yield f"command: {said.command(job)}"
    yield f"in {one_line(job['workdir'])}"
    if job.get("checkpoint"):
        yield f"checkpoint: {job['checkpoint']}"
