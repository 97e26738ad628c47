"""One job of a file: its fields, and what must hold between them and among jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from trainyard.errors import did_you_mean
from trainyard.files.checking import check
from trainyard.files.job_check import JobCheck
from trainyard.files.position import Path, Position, dotted
from trainyard.model.job import Job
from trainyard.model.profile import Profile

KNOWN = frozenset(field.name for field in fields(Job) if field.init)
MOST_NAMES = 12  # of a note
Note = Callable[[str], None]
INLINE = "a job's 'profile' brings a model of your own"


class JobReader:
    """Reads the jobs of one file; no id may come twice, and equal profiles become one object."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        can_run: JobCheck | None = None,
        own_models: str = INLINE,
        *,
        needs_work: bool = True,
    ) -> None:
        from trainyard.files import schemas

        self._row, self._object = schemas.JOB_ROW, schemas.JOB
        self._profiles = profiles
        self._can_run = can_run
        self._own_models = own_models  # how users bring models of their own
        self._needs_work = needs_work  # else nobody may know how long a job takes
        self._inline: dict[str, Profile] = {}
        self._seen: dict[str, Path | int | None] = {}
        self.unused: set[str] = set()  # names of fields that no job has

    def read(self, data: object, place: Position, *, cells: bool = False) -> Job:
        """Read a job from a mapping; unknown keys are left alone, and kept in `unused`."""
        given = check(self._row if cells else self._object, data, place, cells=cells)
        if not cells and isinstance(data, dict) and not data.keys() <= KNOWN:
            self.unused |= data.keys() - KNOWN
        if "profile" in given:
            given["profile"] = self._own(given["profile"], place.at("profile"))
        elif "model" in given:
            given["profile"] = self._named(given["model"], place)
        if "sizes" in given:
            given["sizes"] = _within(given, place)
        job = Job(**given)
        self._once(job.job_id, place)
        if self._needs_work or job.duration_s is not None or job.samples is not None:
            _check_work(job, place)
        _check_range(job, place)
        if self._can_run is not None:
            self._can_run(job, place)
        return job

    def _once(self, job_id: str, place: Position) -> None:
        if job_id in self._seen:
            first = self._seen[job_id]
            taken = dotted(first) if isinstance(first, tuple) else f"line {first}"
            raise place.error(
                f"'{job_id}' is already the id of the job in {taken}; it must be unique", "job_id"
            )
        self._seen[job_id] = place.path or place.line_of(())

    def _own(self, data: Any, place: Position) -> Profile:
        from trainyard.files.profiles import parse_profile

        key = repr(data)
        if key not in self._inline:
            self._inline[key] = parse_profile(data, place.where, line_of=place.line_of, path=place.path)
        return self._inline[key]

    def _named(self, model: str, place: Position) -> Profile:
        if model not in self._profiles:
            hint = did_you_mean(model, self._profiles)
            raise place.error(f"unknown model '{model}'{hint} ({self._own_models})", "model")
        return self._profiles[model]


def tell_unused(note: Note | None, where: str, kind: str, names: Iterable[str]) -> None:
    """Say in one line which columns or fields of jobs are not used; an empty name says nothing."""
    listed = sorted(name if name.isprintable() else repr(name) for name in names if name)
    if note is not None and listed:
        more = ", ..." if len(listed) > MOST_NAMES else ""
        note(f"{where}: {kind} not used: {', '.join(listed[:MOST_NAMES])}{more}")


def _check_work(job: Job, place: Position) -> None:
    if (job.duration_s is None) == (job.samples is None):
        both = "are both empty" if job.samples is None else "are both given"
        raise place.error(f"duration_s and samples {both}; give exactly one of them", "duration_s")
    if job.samples is not None and job.profile is None:
        what = "samples need a model or a profile to tell their speed; give one, or duration_s"
        raise place.error(what, "samples")


def _within(given: Mapping[str, Any], place: Position) -> tuple[int, ...]:
    """Return the sizes of a job that are within its range; what it asks for must be one of them."""
    gpus = given["gpus"]
    if gpus not in given["sizes"]:
        raise place.error(f"{gpus} is missing, but gpus is {gpus}; gpus must be one of the sizes", "sizes")
    least, most = given.get("min_gpus", gpus), given.get("max_gpus", gpus)
    return tuple(size for size in given["sizes"] if min(least, gpus) <= size <= max(most, gpus))


def _check_range(job: Job, place: Position) -> None:
    least, gpus, most = job.min_gpus, job.gpus, job.max_gpus
    if least is not None and most is not None and least > most:
        raise place.error(f"{least} is more than max_gpus {most}; it must be at most max_gpus", "min_gpus")
    if least is not None and least > gpus:
        raise place.error(f"{least} is more than gpus {gpus}; it must be at most gpus", "min_gpus")
    if most is not None and most < gpus:
        raise place.error(f"{most} is less than gpus {gpus}; it must be at least gpus", "max_gpus")
