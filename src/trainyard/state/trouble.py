"""What went wrong with one job, and what keeps it from being planned: few jobs have any of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trainyard.model.spoken import moment
from trainyard.model.terms import When
from trainyard.state.lifecycle import State


@dataclass(slots=True)
class Trouble:
    """Counters of bad ends, what it is waiting for, and what it becomes once its processes are gone."""

    counted: int = 0  # ends that took one of its retries
    idle: int = 0  # restarts in a row that nobody asked for, without new progress
    failed_starts: int = 0  # in a row
    shuns: tuple[str, ...] = ()  # nodes where these starts failed: others come first
    unsaved: int = 0  # stops in a row that left no checkpoint
    reached: float = -1.0  # most samples that were saved when it ended by itself
    until_s: float = 0.0  # it is not started before
    again_s: float = 0.0  # when a user had it tried again
    saved_s: float = 0.0  # when it last saved its work, as far as is known
    tried_s: float = 0.0  # when the first of its failed starts was
    tried: list[str] = field(default_factory=list)  # nodes of these
    speeds: list[float] = field(default_factory=list)  # samples/s that were measured, the fastest
    speeds_run: int = -1  # number of the run that had them
    unmet: dict[str, When] = field(default_factory=dict)  # jobs that have to end first, and how
    unfit: str = ""  # why it would find no place even alone in the cluster as it is
    code: str = ""  # the latest reason, a stable word
    text: str = ""  # the same for people
    ending: State | None = None  # what it becomes when its processes are gone; None: it waits again
    on: set[str] | None = None  # nodes where its processes may still be; None: on all that it occupies

    def copy(self) -> Trouble:
        """Return an independent copy."""
        on = None if self.on is None else self.on.copy()
        return replace(
            self, unmet=self.unmet.copy(), on=on, tried=self.tried.copy(), speeds=self.speeds.copy()
        )

    def patience(self, many_unsaved: int) -> float:
        """How many times as long as usual it may take to stop: it saved nothing too often."""
        return 1.0 if self.unsaved < many_unsaved else 2.0 ** min(self.unsaved - many_unsaved + 1, 10)

    def last_saved(self) -> str:
        """Say where it goes on: a moment, or its start."""
        return moment(self.saved_s) if self.saved_s else "the start"

    def blame(self, code: str, text: str) -> None:
        """Say why it is not running."""
        self.code, self.text = code, text

    def record(self) -> dict[str, Any]:
        """Return it as data for a file; `Trouble.of` makes the same of it again."""
        said = {name: value for name, value in asdict(self).items() if value != DEFAULTS[name]}
        return said | ({"on": sorted(self.on)} if self.on is not None else {})

    @classmethod
    def of(cls, record: dict[str, Any]) -> Trouble:
        """Take in what an earlier life wrote down."""
        made = cls(**record)
        made.ending = None if made.ending is None else State(made.ending)
        made.on = None if made.on is None else set(made.on)
        made.shuns = tuple(made.shuns)
        return made


DEFAULTS = asdict(Trouble())
