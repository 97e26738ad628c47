"""Jobs files: CSV with a header or JSON lines, plain or gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from trainyard.errors import InputError
from trainyard.files.csv_table import CsvTable
from trainyard.files.job_check import JobCheck
from trainyard.files.job_reading import JobReader, Note, tell_unused
from trainyard.files.output import write_bytes_atomic
from trainyard.files.position import Position, on_line
from trainyard.files.reading import StrPath, name_of, read_text
from trainyard.garbage import no_collection
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile

DEFAULTS = {field.name: field.default for field in fields(Job) if field.init}
COLUMNS = [name for name in DEFAULTS if name not in ("profile", "terms")]
REQUIRED = [name for name in COLUMNS if DEFAULTS[name] is MISSING]
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
SUFFIXES = tuple(f"{name}{zipped}" for zipped in ("", ".gz") for name in (".csv", *JSON_SUFFIXES))
FROM_A_FILE = "--profiles FILE brings models of your own"
ALWAYS_WRITTEN = (*REQUIRED, "duration_s")


@no_collection()
def load_jobs(
    path: StrPath, profiles: Mapping[str, Profile], cluster: Cluster | None = None, note: Note | None = None
) -> list[Job]:
    """Read a jobs file, sorted by arrival; ties keep file order.

    `profiles` are the models it may name; every job must be able to run on the cluster, if one is given.
    `note` is told of columns that are not used.
    """
    where = name_of(path)
    text = read_text(path, "a header line and a line for each job, or JSON lines")
    if text.lstrip()[0] == "[":
        raise InputError("this is a JSON list; write one job object per line, without brackets", where=where)
    read = _json_jobs if text.lstrip()[0] == "{" else _csv_jobs
    reader = JobReader(profiles, JobCheck(cluster) if cluster is not None else None, FROM_A_FILE)
    jobs = sorted(read(text, where, reader), key=attrgetter("arrival_s"))
    if not jobs:
        raise InputError("there are no jobs after the header; add one line for each job", where=where)
    tell_unused(note, where, "columns" if read is _csv_jobs else "fields", reader.unused)
    return jobs


def _csv_jobs(text: str, where: str, reader: JobReader) -> Iterator[Job]:
    table = CsvTable(text, where, COLUMNS, REQUIRED)
    if not {"duration_s", "samples"} & set(table.header):
        what = "column 'duration_s' (or 'samples') is missing; add it to the first line and to every row"
        raise InputError(what, where=where, line=1, field="duration_s")
    reader.unused.update(set(table.header).difference(COLUMNS))
    return (reader.read(cells, place, cells=True) for cells, place in table.records(COLUMNS))


def _json_jobs(text: str, where: str, reader: JobReader) -> Iterator[Job]:
    for line, row in enumerate(io.StringIO(text), start=1):
        if row.strip():
            place = on_line(where, line)
            yield reader.read(json_value(row, place), place)


def json_value(row: str, place: Position) -> object:
    """Read the object of one line."""
    try:
        return json.loads(row.rstrip())
    except json.JSONDecodeError as error:
        what = f"not valid JSON: {error.msg} at column {error.colno}; every line must be one JSON object"
        raise place.error(what) from None
    except (ValueError, RecursionError):
        what = "a number too long or nesting too deep to be read; every line must be one short JSON object"
        raise place.error(what) from None


def write_jobs(path: StrPath, jobs: Iterable[Job]) -> None:
    """Write a jobs file: JSON lines when the name says .jsonl, else CSV; gzip when it ends in .gz."""
    name = Path(path).name.lower()
    listed = list(jobs)
    as_json = name.removesuffix(".gz").endswith(JSON_SUFFIXES)
    data = (_jsonl_text(listed) if as_json else _csv_text(listed, str(path))).encode()
    # No time stamp in the gzip header: the same jobs give the same bytes.
    write_bytes_atomic(path, gzip.compress(data, 6, mtime=0) if name.endswith(".gz") else data)


def _csv_text(jobs: Sequence[Job], where: str) -> str:
    for job in jobs:
        if _has_own_profile(job):
            what = f"job '{job.job_id}' has a profile of its own, which CSV cannot hold; write a .jsonl file"
            raise InputError(what, where=where)
    columns = [
        n for n in COLUMNS if n in ALWAYS_WRITTEN or any(getattr(job, n) != DEFAULTS[n] for job in jobs)
    ]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    get = attrgetter(*columns)
    rows = map(get, jobs)
    writer.writerows(map(_cells, rows) if {"sizes", "preemptible"} & {*columns} else rows)
    return out.getvalue()


def _cells(values: tuple[Any, ...]) -> list[Any]:
    """Write lists and truth values as a reader of the table would."""
    return [
        "|".join(map(str, value))
        if isinstance(value, tuple)
        else str(value).lower()
        if isinstance(value, bool)
        else value
        for value in values
    ]


def _jsonl_text(jobs: Sequence[Job]) -> str:
    return "".join(json.dumps(job_record(job), ensure_ascii=False) + "\n" for job in jobs)


def job_record(job: Job) -> dict[str, Any]:
    """Return a job as an object of a jobs file, without what has its default value."""
    record = {n: getattr(job, n) for n in COLUMNS if getattr(job, n) != DEFAULTS[n]}
    if job.profile is not None and _has_own_profile(job):
        from trainyard.files.profiles import profile_record

        record["profile"] = profile_record(job.profile)
    return record


def _has_own_profile(job: Job) -> bool:
    """Whether the job's profile is its own, not the one that its model names."""
    return job.profile is not None and (not job.model or job.profile.name != job.model)
