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
    "command": "COMMAND",
    "workdir": "this directory",
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
    field, text = error.field or "", str(error)
    if not field or not text.startswith(f"{field}:"):
        return error
    base, _, rest = field.replace("[", ".").partition(".")
    option = OPTIONS.get(field) or OPTIONS.get(base) or f"--{base.replace('_', '-')}"
    name = f" {rest}" if base == "env" else ""
    return RefusedError(option + name + text.removeprefix(field), error.code, field)
