"""`trainyard run`: submit a job, show its output, end as it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from trainyard.cli import options as o
from trainyard.cli.client.link import Job, Link
from trainyard.cli.client.options import with_link
from trainyard.cli.jobs.submission import Body, with_submission
from trainyard.cli.shown.plain import one_line

BY_SIGNAL = 128  # as shells count
INTERRUPTED = 130  # as shells call it


@with_link
@with_submission
def run(*, body: Callable[[], Body], link: Callable[[], Link], json_: o.Json = False) -> None:
    """Submit a job, follow its output and return its exit code."""
    from trainyard.cli.jobs.sending import send
    from trainyard.cli.shown.as_json import print_json

    asked = link()
    job = send(asked, body())
    try:
        job = _follow(asked, job, sys.stderr if json_ else sys.stdout)
    except KeyboardInterrupt:
        print(_goes_on(job["job_id"]), file=sys.stderr)
        leave(INTERRUPTED)
    if json_:
        print_json(job)
    if job["state"] != "done":
        print(ended(job), file=sys.stderr)
    leave(exit_code(job))


def _follow(link: Link, job: Job, to: TextIO) -> Job:
    """Show the output of a job until it is over; return the job."""
    from trainyard.cli.client.following import follow
    from trainyard.cli.jobs.output import Output
    from trainyard.cli.jobs.sinks import Screen

    screen = Screen(to, named=False)
    output, waits = Output(link, job, screen), Waits()

    def look() -> bool:
        over = output.hand_on()
        waits.tell(output.job)
        return over

    follow(link, output.topics, look)
    screen.end()
    return output.job


class Waits:
    """Tells on stderr why nothing happens, once for each reason."""

    def __init__(self) -> None:
        self._said = {("waiting", "")}

    def tell(self, job: Job) -> None:
        """Say why a job does not run."""
        why = job["state"], job["reason_code"]
        if job["state"] in ("waiting", "held") and why not in self._said:
            self._said.add(why)
            print(ended(job), file=sys.stderr)


def ended(job: Job) -> str:
    """Say what became of a job, or why it waits."""
    reason = one_line(job["reason"])
    return f"{job['job_id']} {job['state']}{f': {reason}' if reason else ''}"


def exit_code(job: Job) -> int:
    """Return the code that a command which stands for this job ends with."""
    if job["state"] == "done":
        return 0
    if job["exit_signal"]:
        return BY_SIGNAL + int(job["exit_signal"])
    return int(job["exit_code"] or 1)


def leave(code: int) -> None:
    """End with this code, after what was printed is out."""
    sys.stdout.flush()
    sys.exit(code)


def _goes_on(job_id: str) -> str:
    start = "\n" if sys.stderr.isatty() else ""  # after ^C
    remedy = f"trainyard logs -f {job_id} follows it, trainyard cancel {job_id} ends it"
    return f"{start}job {job_id} goes on; {remedy}"
