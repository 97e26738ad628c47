"""Philly, the original: `cluster_job_log`, a JSON list of jobs with their scheduling attempts (ATC '19).

The run time is from the first start to the last end, as in the publishers' own analysis; the GPUs are those
of the first attempt. Jobs that never ran or were still running when the log was taken are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trainyard.errors import InputError
from trainyard.trace.readers.cells import Source, clock_s
from trainyard.trace.records import Collector, Trace

NAME = "philly"
KEYS = ("status", "vc", "jobid", "attempts", "submitted_time")


def read(source: Source) -> Trace:
    """Read a Philly job log."""
    rows = Collector(source.where, NAME)
    for index, entry in enumerate(_entries(source)):
        _add(rows, entry, f"{source.where}, job {index}")
    return rows.trace(on_epoch=True)


def _entries(source: Source) -> Sequence[object]:
    try:
        entries = json.loads(source.text)
    except json.JSONDecodeError as error:
        what = f"not valid JSON: {error.msg}; check that the file is whole"
        raise InputError(what, where=source.where, line=error.lineno) from None
    except RecursionError:
        raise InputError("nested too deep to be a job log", where=source.where) from None
    if not isinstance(entries, list):
        raise InputError("a Philly job log is a JSON list of jobs", where=source.where)
    return entries


def _add(rows: Collector, entry: object, where: str) -> None:
    job = _mapping(entry, where)
    if any(key not in job for key in KEYS):
        missing = next(key for key in KEYS if key not in job)
        raise InputError("is missing", where=where, field=missing)
    attempts = [_mapping(a, where) for a in _list(job["attempts"], where, "attempts")]
    submitted = _time(job, "submitted_time", where)
    starts = [s for a in attempts if (s := _time(a, "start_time", where)) is not None]
    end = _time(attempts[-1], "end_time", where) if attempts else None
    if submitted is None:
        return rows.drop("no time of submission")
    if not starts:
        return rows.drop("never ran")
    if end is None:
        return rows.drop("still running when the log was taken")
    gpus = next((n for a in attempts if (n := _gpus(a, where))), 0)
    tenant, status = str(job["vc"] or ""), str(job["status"] or "")
    return rows.add(str(job["jobid"]), submitted, gpus, end - starts[0], tenant=tenant, status=status)


def _gpus(attempt: Mapping[str, Any], where: str) -> int:
    machines = _list(attempt.get("detail") or [], where, "attempts.detail")
    return sum(len(_list(_mapping(m, where).get("gpus") or [], where, "gpus")) for m in machines)


def _time(entry: Mapping[str, Any], key: str, where: str) -> float | None:
    value = entry.get(key)
    if value in (None, "", "None"):
        return None
    try:
        return clock_s(str(value))
    except ValueError:
        what = f"'{value}' is not a time such as 2017-10-07 01:12:09"
        raise InputError(what, where=where, field=key) from None


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{str(value)[:40]!r} is not a JSON object", where=where)
    return value


def _list(value: object, where: str, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{str(value)[:40]!r} is not a list", where=where, field=field)
    return value
