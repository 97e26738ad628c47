"""Which trace is this? Told from the header or the first rows, never from the name of the file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from trainyard.errors import InputError, did_you_mean
from trainyard.files.jobs import load_jobs
from trainyard.files.reading import StrPath
from trainyard.garbage import no_collection
from trainyard.model.zoo import ZOO
from trainyard.trace.readers import (
    acme,
    attempts,
    gavel,
    helios,
    openb,
    pai,
    philly,
    philly_vc,
    rfold,
    short_form,
    sia,
    thetagpu,
    tiresias,
)
from trainyard.trace.readers.cells import Source
from trainyard.trace.records import ConversionReport, Trace

JOBS = "jobs"
Reader = Callable[[Source], Trace]
_HEADERS = {
    m.NAME: m.COLUMNS for m in (philly_vc, rfold, attempts, helios, openb, acme, tiresias, sia, thetagpu)
}
_READERS: Mapping[str, Reader] = {
    m.NAME: m.read
    for m in (
        philly, philly_vc, rfold, attempts, helios, pai, openb, acme, tiresias, gavel, sia, thetagpu
    )
}  # fmt: skip
_SHORT_READERS: Mapping[str, Reader] = {helios.NAME: helios.read_venus, pai.NAME: pai.read_sample}
FORMATS = tuple(_READERS)


def detect(path: StrPath) -> str:
    """Return the name of a trace's format ("jobs" for a jobs file)."""
    return _detect(Source.open(path))


@no_collection()
def read_trace(path: StrPath, format: str | None = None) -> Trace:
    """Read a trace of a given form, or of the form it seems to have."""
    if format is not None and format not in (*FORMATS, JOBS):
        raise InputError(f"unknown trace format '{format}'{did_you_mean(format, FORMATS)}")
    if format == JOBS:
        return _jobs_file(path)
    source = Source.open(path)
    name = format or _detect(source)
    if name == JOBS:
        if not Path(path).is_file():
            raise InputError("a jobs file that can be read only once needs --format jobs", where=source.where)
        return _jobs_file(path)
    short = name in _SHORT_READERS and _is_short(source.head())
    return (_SHORT_READERS if short else _READERS)[name](source)


def _jobs_file(path: StrPath) -> Trace:
    jobs = load_jobs(path, {name: entry.profile for name, entry in ZOO.items()})
    return Trace(jobs, JOBS, ConversionReport(read=len(jobs)))


def _detect(source: Source) -> str:
    head = source.head()
    found = _by_json(head) or _by_header(head) or _by_row(head)
    if not found:
        known = ", ".join(FORMATS)
        what = f"neither a jobs file nor a trace of a known form; name the form with --format: {known}"
        raise InputError(what, where=source.where, line=1)
    return found


def _by_json(head: list[str]) -> str | None:
    first = head[0].lstrip()
    if first.startswith("["):
        return philly.NAME
    return JOBS if first.startswith("{") and '"arrival_s"' in first else None


def _by_header(head: list[str]) -> str | None:
    header = set(_cells(head[0]))
    if _is_short(head):
        return pai.NAME if len(head) > 1 and head[1].startswith("ali-") else helios.NAME
    if {"job_id", "arrival_s", "gpus"} <= header:
        return JOBS
    if header in (set(pai.JOB_COLUMNS), set(pai.TASK_COLUMNS)):
        return pai.NAME
    # The form of which most columns are there: ThetaGPU's has all of those of the Philly attempts.
    fitting = [name for name, columns in _HEADERS.items() if set(columns) <= header]
    return max(fitting, key=lambda name: len(_HEADERS[name]), default=None)


def _by_row(head: list[str]) -> str | None:
    tabbed = head[0].split("\t")
    if len(tabbed) == len(gavel.COLUMNS) and tabbed[5].isdigit():
        return gavel.NAME
    return pai.NAME if pai.is_row(_cells(head[0])) else None


def _is_short(head: list[str]) -> bool:
    return _cells(head[0]) == list(short_form.COLUMNS)


def _cells(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line]))]
    except csv.Error:
        return []
