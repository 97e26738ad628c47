"""Who wants to know what happens in a running engine, as it happens; the engine's shell tells it."""

from __future__ import annotations

from typing import Protocol

from trainyard.core.events import Ended
from trainyard.state.snapshot import Snapshot


class Watcher(Protocol):
    """Told by the simulator, or by any other shell around the core."""

    def deciding(self, snapshot: Snapshot) -> None:
        """The policy is going to be asked; arrivals are the snapshot's new jobs."""
        ...

    def ended(self, end: Ended) -> None:
        """A job is over."""
        ...
