"""Handing in a job: checked whole, stored once, answered after that."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any, NamedTuple

from trainyard.core.instructions import Ignored
from trainyard.errors import TrainyardError
from trainyard.live.controller import Controller
from trainyard.live.store import reading
from trainyard.live.views import Info
from trainyard.model.job import Job
from trainyard.server.desk import Desk
from trainyard.server.faults import FieldError
from trainyard.server.submission.fitting import Surroundings, check_fits, make_job
from trainyard.server.submission.reading import Wish, read_wish
from trainyard.state.lifecycle import TERMINAL, State


class Submitted(NamedTuple):
    """A job, and whether it is new."""

    job_id: str
    new: bool


async def submit(desk: Desk, body: Any) -> Submitted:
    """Take in a job, or find the one that came with the same key before."""
    wish = read_wish(body)
    wish = wish if wish.user else replace(wish, user=desk.owner)
    controller = desk.controller
    around = Surroundings(
        controller.published.nodes,
        desk.models,
        controller.yard.cluster.tenants,
        controller.settings.most_grace_s,
    )
    check_fits(wish, around)
    if not wish.after:  # else it may be made by whoever comes first
        await asyncio.to_thread(check_directory, wish, controller.published.nodes[0]["node"])  # it may hang
    return await desk.ask(lambda controller: hand_in(controller, wish, around))


def hand_in(controller: Controller, wish: Wish, around: Surroundings) -> Submitted:
    """Tell the core of a job, in the controller's thread."""
    if wish.request_key is not None and (known := _known(controller, wish.request_key)) is not None:
        return Submitted(known, False)
    wish = _without_met(controller, wish)
    number, now = controller.number + 1, controller.clock.now()
    job: Job = make_job(wish, str(number), now, around)
    info = Info(number, wish.name, wish.user, wish.spec, now)
    for said in controller.submit(job, info, wish.request_key):
        if isinstance(said, Ignored):
            raise TrainyardError(f"the core does not take job {number}: {said.why}")
    return Submitted(job.job_id, True)


def _known(controller: Controller, request_key: str) -> str | None:
    """The job that came with this key, in the store or about to be."""
    for row in controller.ledger.batch.jobs:
        if row["request_key"] == request_key:
            return str(row["job_id"])
    with controller.store.engine.connect() as connection:
        return reading.job_of_request(connection, request_key)


def _without_met(controller: Controller, wish: Wish) -> Wish:
    """Leave out jobs that are done, so that only those are waited for that the core knows."""
    left = []
    for i, first in enumerate(dict.fromkeys(wish.after)):
        state = _state_of(controller, first)
        if state is None:
            raise FieldError(f"after[{i}]", f"there is no job {first}; trainyard ps -a shows all")
        if state in TERMINAL and state != State.DONE:
            raise FieldError(f"after[{i}]", f"job {first} is {state}; this one would never start")
        if state != State.DONE:
            left.append(first)
    return replace(wish, after=tuple(left))


def _state_of(controller: Controller, job_id: str) -> str | None:
    record = controller.ledger.find(job_id)
    if record is not None:
        return record.state.value
    with controller.store.engine.connect() as connection:
        row = reading.job_row(connection, job_id)
    return None if row is None else str(row["state"])


def check_directory(wish: Wish, node: str) -> None:
    """See that the job's directory can be entered here."""
    try:
        os.stat(os.path.join(wish.workdir, "."))
        if os.access(wish.workdir, os.X_OK):
            return
        why = os.strerror(13)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise FieldError("workdir", f"{wish.workdir} cannot be entered by user {wish.user} on node {node}: {why}")
