"""Jobs as readers find them: those that the controller shows, and older ones from the store."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from trainyard.live.published import Published
from trainyard.live.store import reading
from trainyard.live.store.tables import JOBS
from trainyard.live.views import View
from trainyard.server.desk import Desk
from trainyard.server.faults import Refusal
from trainyard.state.lifecycle import TERMINAL

RECENT_S = 3600.0  # jobs that ended in this time are listed with those that did not
SHOWN = 5  # jobs that a name fits


def number_of(view: View) -> int:
    """Return the number that ids count up by."""
    return int(view["job_id"].partition("_")[0])


def is_over(view: View) -> bool:
    """Whether a job has ended."""
    return view["state"] in TERMINAL


async def job_of(desk: Desk, job_id: str) -> View:
    """Return a job by its id; 404 if there is none."""
    view = desk.controller.published.job(job_id)
    if view is None:
        row = await desk.read(lambda connection: reading.job_row(connection, job_id))
        view = None if row is None or row["view"] is None else json.loads(row["view"])
    if view is None:
        raise Refusal(404, f"there is no job {job_id[:40]}; trainyard ps -a shows all")
    return view


async def recent(desk: Desk, state: str, text: str, after: int, limit: int) -> dict[str, Any]:
    """Return jobs that are not over or ended lately, by number."""
    since = desk.controller.clock.now() - RECENT_S
    ended = await desk.read(lambda connection: reading.ended_jobs(connection, since))
    known = {view["job_id"]: view for view in ended}
    for view in desk.controller.published.jobs():
        if not is_over(view) or (view["finished_s"] or 0.0) >= since:
            known[view["job_id"]] = view
    fit = sorted((view for view in known.values() if _fits(view, state, text)), key=number_of)
    rest = [view for view in fit if number_of(view) > after]
    return _page(rest[:limit], len(fit), len(rest) > limit)


def _page(views: list[View], total: int, more: bool) -> dict[str, Any]:
    return {"jobs": views, "total": total, "next": number_of(views[-1]) if more and views else None}


def _fits(view: View, state: str, text: str) -> bool:
    texts = (view["name"], view["user"], view["tenant"], view["model"])
    return (not state or view["state"] == state) and (
        not text or view["job_id"] == text or any(text.lower() in part.lower() for part in texts)
    )


async def history(desk: Desk, state: str, text: str, before: int | None, limit: int) -> dict[str, Any]:
    """Return all jobs there ever were, newest first."""
    if state and state not in TERMINAL:  # the store does not know them apart
        shown = sorted(desk.controller.published.jobs(), key=number_of, reverse=True)
        fit = [view for view in shown if _fits(view, state, text)]
        rest = [view for view in fit if before is None or number_of(view) < before]
        return _page(rest[:limit], len(fit), len(rest) > limit)
    where = _where(state, text)

    def read(connection: Connection) -> tuple[int, list[Any]]:
        total = connection.execute(select(func.count()).select_from(JOBS).where(*where)).scalar() or 0
        asked = select(JOBS.c.job_id, JOBS.c.view).where(*where).order_by(JOBS.c.number.desc())
        if before is not None:
            asked = asked.where(JOBS.c.number < before)
        return total, list(connection.execute(asked.limit(limit + 1)))

    total, rows = await desk.read(read)
    views = [_shown(desk.controller.published, job_id, view) for job_id, view in rows[:limit]]
    return _page([view for view in views if view is not None], total, len(rows) > limit)


def _where(state: str, text: str) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if state:
        where.append(JOBS.c.state == state)
    if text:
        columns = (JOBS.c.name, JOBS.c.user, JOBS.c.tenant)
        where.append(
            or_(JOBS.c.job_id == text, *(column.icontains(text, autoescape=True) for column in columns))
        )
    return where


def _shown(published: Published, job_id: str, stored: str | None) -> View | None:
    """What is published is newer; a job that is neither has been submitted this instant."""
    view = published.job(job_id)
    return view if view is not None else None if stored is None else json.loads(stored)


# -- which job is meant ----------------------------------------------------------------------


async def find(desk: Desk, text: str, user: str) -> list[View]:
    """Return the job that a user means: an id, `-` (the last one), a name or the beginning of one."""
    if text == "-":
        return [await _last(desk, user)]
    if text.replace("_", "").isdigit():
        return [await job_of(desk, text)]
    active = [v for v in desk.controller.published.jobs() if not is_over(v) and v["user"] == user]
    fit = [view for view in active if view["name"] == text] or [
        view for view in active if view["name"].startswith(text)
    ]
    if not fit:
        fit = await desk.read(lambda connection: _ended(connection, text, user))
    if not fit:
        raise Refusal(404, f"no job is called '{text[:40]}'; trainyard ps -a shows all")
    if len(fit) > 1:
        raise Refusal(422, ambiguous(text, fit))
    return fit


def ambiguous(text: str, views: Iterable[View]) -> str:
    """Say which jobs a name fits."""
    fit = sorted(views, key=number_of)
    more = ", ..." if len(fit) > SHOWN else ""
    listed = ", ".join(f"{view['job_id']} {view['name']}" for view in fit[:SHOWN])
    return f"'{text}' fits {len(fit)} jobs: {listed}{more}; give the id"


async def _last(desk: Desk, user: str) -> View:
    asked = select(JOBS.c.job_id).where(JOBS.c.user == user).order_by(JOBS.c.number.desc()).limit(1)
    job_id = await desk.read(lambda connection: connection.execute(asked).scalar())
    if job_id is None:
        raise Refusal(404, f"user {user} has not submitted any job yet")
    return await job_of(desk, job_id)


def _ended(connection: Connection, text: str, user: str) -> list[View]:
    """The newest job of this name that is over; else all names that begin so, the newest job of each."""
    mine = select(JOBS.c.view).where(JOBS.c.user == user, JOBS.c.view.is_not(None))
    newest = mine.order_by(JOBS.c.number.desc())
    exact = connection.execute(newest.where(JOBS.c.name == text).limit(1)).scalar()
    if exact is not None:
        return [json.loads(exact)]
    begun = newest.where(JOBS.c.name.startswith(text, autoescape=True)).limit(1000)
    by_name: dict[str, View] = {}
    for (stored,) in connection.execute(begun):
        view = json.loads(stored)
        by_name.setdefault(view["name"], view)
    return list(by_name.values())
