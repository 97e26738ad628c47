"""What may be changed of a job after it was submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite

from trainyard.errors import InputError, did_you_mean
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.terms import NO_TERMS

OF_TERMS = ("time_limit_s", "retries")
WHOLE = ("priority", "min_gpus", "max_gpus", "retries")
CHANGEABLE = ("priority", "deadline_s", "min_gpus", "max_gpus", *OF_TERMS)
COUNTS = ("most_starts", "most_idle", "many_unsaved")
CHANGEABLE_RULES = ("round_s", "restart_s", "start_s", "seed", "back_off_s", "most_back_off_s", *COUNTS)


def changed_job(job: Job, changes: Mapping[str, float | int | None]) -> Job:
    """Return the job as it is from now on; InputError if that cannot be."""
    for name, value in changes.items():
        if name not in CHANGEABLE:
            raise InputError(f"'{name}' of a job cannot be changed{did_you_mean(name, CHANGEABLE)}")
        if value is not None and not isfinite(value) and not (name == "time_limit_s" and value == inf):
            raise InputError(f"'{name}' of job {job.job_id} cannot be {value}")
        if name in WHOLE and not (
            isinstance(value, int) or (value is None and name in ("min_gpus", "max_gpus"))
        ):
            raise InputError(f"'{name}' of job {job.job_id} must be a whole number, not {value}")
    if not job.elastic and {"min_gpus", "max_gpus"} & set(changes):
        raise InputError(f"job {job.job_id} is not elastic: it runs with {job.gpus} GPUs or not at all")
    given = {n: float(v) if n.endswith("_s") and v is not None else v for n, v in changes.items()}
    terms = {name: value for name, value in given.items() if name in OF_TERMS}
    others = {name: value for name, value in given.items() if name not in OF_TERMS}
    for name, value in terms.items():
        if value is None or value < 0:
            raise InputError(f"'{name}' of job {job.job_id} must be 0 or more")
    least, most = others.get("min_gpus", job.min_gpus), others.get("max_gpus", job.max_gpus)
    if not 1 <= (job.gpus if least is None else least) <= job.gpus <= (job.gpus if most is None else most):
        raise InputError(f"job {job.job_id} asks for {job.gpus} GPUs, so these are no limits of its size")
    made = replace(job, **others)  # type: ignore[arg-type]
    if terms:
        made = replace(made, terms=replace(job.terms or NO_TERMS, **terms))  # type: ignore[arg-type]
    return made


def changed_rules(rules: Rules, changes: Mapping[str, float | int | None]) -> Rules:
    """Return the rules as they are from now on; InputError if that cannot be."""
    for name, value in changes.items():
        if name not in CHANGEABLE_RULES:
            raise InputError(f"the rule '{name}' cannot be changed{did_you_mean(name, CHANGEABLE_RULES)}")
        if value is None and name in ("round_s", "restart_s"):
            continue
        least = 1 if name in COUNTS else 0
        if value is None or not isfinite(value) or value < least or (name == "round_s" and not value):
            raise InputError(f"the rule '{name}' cannot be {value}")
        if name in (*COUNTS, "seed") and not isinstance(value, int):
            raise InputError(f"the rule '{name}' must be a whole number, not {value}")
    return replace(rules, **changes)  # type: ignore[arg-type]
