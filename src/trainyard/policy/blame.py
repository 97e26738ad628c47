"""Whose fault is it? Errors of stages of other packages, in one line that names the stage and its package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_tb
from types import FrameType
from typing import Any

from trainyard.errors import StageError, TrainyardError
from trainyard.model.allocation import Plan
from trainyard.model.job import Job
from trainyard.policy.order.score import JobView
from trainyard.policy.policy import Policy
from trainyard.policy.request import Request
from trainyard.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Borrowed(Policy):
    """A policy with stages of other packages, whose errors are told as theirs."""

    origins: tuple[tuple[Any, str], ...] = ()  # these stages, and where each comes from

    def decide(self, snapshot: Snapshot, explain: bool = False) -> Plan:
        """Return what should run now, or say which stage failed."""
        with blaming(self):
            return Policy.decide(self, snapshot, explain)


@contextmanager
def blaming(policy: Policy) -> Iterator[None]:
    """Turn what a stage of another package raises into one line; errors of our own stages pass."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        for stage, origin in policy.origins if isinstance(policy, Borrowed) else ():
            if _is_of(stage, error, frames):
                raise stage_error(policy.name, origin, error, _at_job(stage, frames)) from error
        raise


def stage_error(policy: str, origin: str, error: BaseException, when: str = "") -> StageError:
    """Say what a stage of another package raised, and in which policy."""
    said = (
        str(error) if isinstance(error, TrainyardError) else f"{type(error).__name__}: {error}".rstrip(": ")
    )
    return StageError(
        f"policy '{policy}': {origin}: it fails{when} ({said}); repair or uninstall the package"
    )


def _is_of(stage: Any, error: BaseException, frames: Sequence[FrameType]) -> bool:
    """Whether an error comes out of a stage, or out of the way it wants to be asked."""
    if any(frame.f_locals.get("self") is stage for frame in frames):
        return True
    if isinstance(error, AttributeError) and error.obj is stage:
        return True
    # A method of other arguments is never entered; Python names it first: "Big.rank() takes 1 ...".
    kinds = [kind for kind in type(stage).__mro__ if not kind.__module__.startswith("trainyard.")]
    return isinstance(error, TypeError) and str(error).startswith(tuple(f"{k.__qualname__}." for k in kinds))


def _at_job(stage: Any, frames: Sequence[FrameType]) -> str:
    """Name the job that the stage was asked about, if one can be told."""
    for frame in reversed(frames):
        if frame.f_locals.get("self") is stage:
            for value in frame.f_locals.values():
                job = value.job if isinstance(value, Request) else value
                if isinstance(job, Job | JobView):
                    return f" at job '{job.job_id}'"
    return ""
