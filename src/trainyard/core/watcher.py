"""A `Watcher` follows a run as it happens; the clock around the core tells it."""

from __future__ import annotations

from typing import Protocol

from trainyard.core.instructions import Ended
from trainyard.state.snapshot import Snapshot


class Watcher(Protocol):
    """Told by the simulator, or by any other clock around the core."""

    def deciding(self, snapshot: Snapshot) -> None:
        """The policy is going to be asked; arrivals are the snapshot's new jobs."""
        ...

    def ended(self, end: Ended) -> None:
        """A job is over."""
        ...
