"""Sending a submission so that it arrives once."""

from __future__ import annotations

import os

from trainyard.cli.client.link import Job, Link
from trainyard.cli.jobs.submission import Body
from trainyard.errors import RefusedError

OPTIONS = {
    "gpus.min": "--min",
    "gpus.max": "--max",
    "gpu_types": "--gpu-type",
    "time_limit_s": "--time-limit",
    "grace_s": "--grace",
    "memory_gb": "--memory-gb",
    "command": "COMMAND",
}


def send(link: Link, body: Body) -> Job:
    """Submit a job; the key makes sure that a second try after a broken connection is the same job."""
    after = [link.job(name)["job_id"] for name in body.get("after", ())]
    sent = body | {"request_key": os.urandom(16).hex()} | ({"after": after} if after else {})
    try:
        job: Job = link.post("/jobs", sent, again=True)
    except RefusedError as error:
        raise _as_option(error) from None
    return job


def _as_option(error: RefusedError) -> RefusedError:
    """Name the option instead of the field, which nobody wrote."""
    if not error.field or not str(error).startswith(f"{error.field}:"):
        return error
    own = OPTIONS.get(error.field) or f"--{error.field.partition('.')[0].replace('_', '-')}"
    return RefusedError(own + str(error).removeprefix(error.field), error.code, error.field)
