"""Every time-out, grace and limit of a controller, in one place; `up --settings FILE` sets them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trainyard.errors import InputError, did_you_mean
from trainyard.files.document import load_document
from trainyard.files.position import Position
from trainyard.model.rules import Rules

MOST = 1e12


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds unless their names say otherwise."""

    # how runs end
    grace_s: float = 60.0  # between SIGTERM and SIGKILL, unless the job says otherwise
    most_grace_s: float = 600.0  # however often it did not save in time
    kill_s: float = 5.0  # for the other workers, when one ended badly
    most_starts: int = 3  # failed starts in a row; then a job has failed
    most_idle: int = 5  # restarts in a row that nobody asked for, without progress; then a job is held
    many_unsaved: int = 3  # stops in a row without a checkpoint, from which on there is more grace
    back_off_s: float = 10.0  # after a counted end; it doubles
    most_back_off_s: float = 300.0
    # how the controller looks and acts
    observe_s: float = 1.0  # between two looks at everything that runs
    act_s: float = 30.0  # a backend may take so long for one thing
    again_s: float = 5.0  # before something is done again that had no effect
    silent_s: float = 30.0  # a backend that did not answer for so long is said to be silent
    report_s: float = 600.0  # a job's report is written down at least so often, if there is any
    # how it keeps things
    snapshot_events: int = 2000  # between two snapshots of the core
    remember: int = 1000  # jobs that are over and can be tried again, or waited for
    log_bytes: int = 1_000_000_000  # of the output of one attempt on one node
    store_s: float = 5.0  # a store that cannot be written for so long is said to be in trouble
    store_again_s: float = 0.25  # before it is tried again
    # how it answers
    body_bytes: int = 1_000_000  # of a request
    answer_s: float = 5.0  # answers that are on their way when it ends
    delta_s: float = 0.2  # between two events that say what changed
    keep_alive_s: float = 15.0  # a stream says something so often

    def rules(self) -> dict[str, float | int | None]:
        """Return those that are the core's rules."""
        names = {field.name for field in fields(Rules)}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name in names}


def read_settings(path: Path) -> Settings:
    """Read a YAML file with any of the settings."""
    given, place = load_document(path, "settings: NAME: NUMBER, one a line")
    if not isinstance(given, dict):
        raise InputError("settings are written as NAME: NUMBER, one a line", where=str(path))
    known = {field.name: field.type for field in fields(Settings)}
    for name, value in given.items():
        if name not in known:
            raise place.error(f"there is no setting '{name}'{did_you_mean(str(name), known)}", str(name))
        _check(value, known[name] == "int", place.at(name))
    return Settings(**given)


def _check(value: Any, whole: bool, place: Position) -> None:
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    least = 1 if whole else 0
    if not number or not least <= value <= MOST:
        wanted = "a whole number of at least 1" if whole else "a number of at least 0"
        raise place.error(f"{value!r} does not fit; it must be {wanted}")
