"""The fields of a job in files, and what must hold between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from trainyard.errors import did_you_mean
from trainyard.files.values import FieldError, Kind, Name, Number, Text, Whole
from trainyard.model.job import Job
from trainyard.model.profile import Profile

POSITIVE = Number(above=True)
REQUIRED = ("job_id", "arrival_s", "gpus")
KINDS: dict[str, Kind[object]] = {
    "job_id": Name("job-17"),
    "arrival_s": Number(),
    "gpus": Whole(),
    "duration_s": POSITIVE,
    "samples": POSITIVE,
    "model": Text("resnet50"),
    "min_gpus": Whole(),
    "max_gpus": Whole(),
    "tenant": Name("team-a"),
    "weight": POSITIVE,
    "deadline_s": POSITIVE,
    "gpu_type": Text("V100"),
    "cpus": POSITIVE,
    "memory_gb": POSITIVE,
    "status": Name("Pass"),
    "checkpoint_s": POSITIVE,
}
JOB_KEYS = (*KINDS, "profile")
SLOTS = {field.name: i for i, field in enumerate(fields(Job))}
DEFAULTS = {field.name: None if field.default is MISSING else field.default for field in fields(Job)}
_ID, _ARRIVAL, _GPUS, _DURATION, _SAMPLES, _MODEL, _PROFILE, _MIN, _MAX = (
    SLOTS[name] for name in (*REQUIRED, "duration_s", "samples", "model", "profile", "min_gpus", "max_gpus")
)


def accept_values(data: Mapping[Any, object], profile: Profile | None) -> list[object]:
    """Read the fields of a job in JSON: one value per field of `Job`, in their order."""
    values = list(DEFAULTS.values())
    values[_PROFILE] = profile
    for name, kind in KINDS.items():
        value = data.get(name)
        if value is not None and value != "":
            try:
                values[SLOTS[name]] = kind.accept(value)
            except FieldError as wrong:
                raise FieldError(wrong.what, name) from None
    return values


class JobBuilder:
    """Makes jobs from checked values, and sees that they fit together and that no id comes twice."""

    def __init__(self, profiles: Mapping[str, Profile], place: str = "line {}") -> None:
        self._profiles = profiles
        self._place = place
        self._seen: dict[str, int] = {}

    def build(self, values: list[object], number: int) -> Job:
        """Make a job from one value per field of `Job`, in their order; `number` is its line or index."""
        if values[_ID] is None or values[_ARRIVAL] is None or values[_GPUS] is None:
            name = next(name for name in REQUIRED if values[SLOTS[name]] is None)
            raise FieldError(f"is empty; it must be {KINDS[name].wanted}", name)
        self._once(values[_ID], number)
        if values[_MODEL] and values[_PROFILE] is None:
            values[_PROFILE] = self._profile(str(values[_MODEL]))
        _check_work(values)
        if values[_MIN] is not None or values[_MAX] is not None:
            _check_range(values[_MIN], values[_GPUS], values[_MAX])
        return Job(*values)  # type: ignore[arg-type]

    def _once(self, job_id: object, number: int) -> None:
        first = self._seen.setdefault(str(job_id), number)
        if first != number:
            taken = self._place.format(first)
            raise FieldError(
                f"'{job_id}' is already the id of the job in {taken}; it must be unique", "job_id"
            )

    def _profile(self, model: str) -> Profile:
        profile = self._profiles.get(model)
        if profile is None:
            hint = did_you_mean(model, self._profiles) or "; give a file with its profile"
            raise FieldError(f"unknown model '{model}'{hint}", "model")
        return profile


def _check_work(values: list[object]) -> None:
    duration, samples = values[_DURATION], values[_SAMPLES]
    if (duration is None) == (samples is None):
        both = "are both empty" if duration is None else "are both given"
        raise FieldError(f"duration_s and samples {both}; give exactly one of them", "duration_s")
    if samples is not None and values[_PROFILE] is None:
        raise FieldError(
            "samples need a model or a profile to tell their speed; give one, or duration_s", "samples"
        )


def _check_range(least: object, gpus: object, most: object) -> None:
    assert isinstance(gpus, int)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise FieldError(f"{least} is more than max_gpus {most}; it must be at most max_gpus", "min_gpus")
    if isinstance(least, int) and least > gpus:
        raise FieldError(f"{least} is more than gpus {gpus}; it must be at most gpus", "min_gpus")
    if isinstance(most, int) and most < gpus:
        raise FieldError(f"{most} is less than gpus {gpus}; it must be at least gpus", "max_gpus")
