"""Events as records of a log, and back: what is written is read again to the last bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import lru_cache
from math import isfinite
from typing import Any

from trainyard.core.events import Event
from trainyard.errors import InputError
from trainyard.files.profiles import parse_profile, profile_record
from trainyard.model.cluster import Node
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.model.reservation import Reservation
from trainyard.model.terms import Terms
from trainyard.state.lifecycle import State

VERSION = 1
FEW = 1024  # profiles that are remembered
TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in Event.__args__}
DEFAULTS = {field.name: field.default for field in fields(Job) if field.init}
NO_TERMS = asdict(Terms())


def to_record(event: Event) -> dict[str, Any]:
    """Return an event as plain data that JSON can hold."""
    record: dict[str, Any] = {"v": VERSION, "event": type(event).__name__}
    for field in fields(event):
        record[field.name] = plain(getattr(event, field.name))
    return record


def from_record(record: Mapping[str, Any]) -> Event:
    """Return the event that a record was made from; InputError if it is none of ours."""
    kind = TYPES.get(record.get("event", ""))
    if kind is None or record.get("v") != VERSION:
        what = f"event {record.get('event')!r} of version {record.get('v')!r}"
        raise InputError(f"{what} is not known; this is version {VERSION} of the log")
    given = {name: value for name, value in record.items() if name not in ("v", "event")}
    try:
        for name, make in MAKERS.items():
            if name in given:
                given[name] = make(given[name])
        event: Event = kind(**_read(kind, given))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"a record of {kind.__name__} is damaged: {error}") from None
    return event


def plain(value: Any) -> Any:
    """Return a part of an event as plain data."""
    if isinstance(value, Job):
        return job_to_record(value)
    if isinstance(value, (Node, Reservation)):
        return plain(asdict(value))
    if isinstance(value, State):
        return value.value
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return list(value) if isinstance(value, tuple) else _finite(value)


def _finite(value: Any) -> Any:
    """JSON has no infinity, and not what is no number."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _read(kind: type[Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a kind, with the numbers that JSON does not have."""
    numbers = {field.name for field in fields(kind) if str(field.type).startswith("float")}
    return {n: float(v) if n in numbers and isinstance(v, str) else v for n, v in record.items()}


def job_to_record(job: Job) -> dict[str, Any]:
    """Return a job with its profile and terms as plain data, without what has its default value."""
    said = {name: getattr(job, name) for name in DEFAULTS if getattr(job, name) != DEFAULTS[name]}
    record = {name: _finite(value) for name, value in said.items()}
    if job.profile is not None:
        record["profile"] = {"name": job.profile.name, **profile_record(job.profile)}
    if job.terms is not None:
        said = {name: value for name, value in asdict(job.terms).items() if value != NO_TERMS[name]}
        record["terms"] = {name: plain(value) for name, value in said.items()}
    if job.sizes:
        record["sizes"] = list(job.sizes)
    return record


def job_from_record(record: Mapping[str, Any]) -> Job:
    """Return the job that a record was made from."""
    given = _read(Job, record)
    if "profile" in given:
        given["profile"] = _profile(json.dumps(given["profile"]))
    if "terms" in given:
        given["terms"] = _terms(given["terms"])
    if "sizes" in given:
        given["sizes"] = tuple(given["sizes"])
    try:
        return Job(**given)
    except TypeError as error:
        raise InputError(f"a job of the log is damaged: {error}") from None


@lru_cache(maxsize=FEW)
def _profile(text: str) -> Profile:
    """Return a profile; thousands of jobs have the same."""
    record = json.loads(text)
    return parse_profile(record, "the log", name=record.pop("name"))


def _terms(record: Mapping[str, Any]) -> Terms:
    given = _read(Terms, record)
    if "transient_exit_codes" in given:
        given["transient_exit_codes"] = tuple(given["transient_exit_codes"])
    return Terms(**given)


def reservation_of(record: Mapping[str, Any]) -> Reservation:
    """Return the reservation that a record was made from."""
    return Reservation(**_read(Reservation, record) | {"nodes": tuple(record["nodes"])})


MAKERS: dict[str, Callable[[Any], Any]] = {
    "job": job_from_record,
    "outcome": State,
    "reservation": reservation_of,
    "node": lambda node: Node(**_read(Node, node)) if isinstance(node, Mapping) else node,
    "gpus": lambda gpus: {node: tuple(indices) for node, indices in gpus.items()},
    "changes": lambda changes: {n: float(v) if isinstance(v, str) else v for n, v in changes.items()},
}
