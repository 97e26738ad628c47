"""What readers see: jobs and nodes as they were after the last commit. No reader waits for a decision."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from trainyard.live.views import View

KEPT = 300  # deltas that are kept for readers that come back


class Published:
    """Written by the controller's thread alone; views are never changed, only replaced."""

    def __init__(self, epoch: int) -> None:
        self.epoch, self.version = epoch, 0
        self.nodes: list[View] = []
        self.status: Mapping[str, Any] = {}
        self.refusals = 0  # plans
        self.refused: tuple[float, str] | None = None  # the last one
        self._jobs: dict[str, View] = {}
        self._deltas: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._lock = Lock()
        self._listeners: list[Callable[[], None]] = []

    def update(self, jobs: Mapping[str, View], nodes: list[View], status: Mapping[str, Any]) -> None:
        """Show what changed."""
        changed = {job: view for job, view in jobs.items() if self._jobs.get(job) != view}
        same_nodes = nodes == self.nodes
        with self._lock:
            self._jobs.update(changed)
            self.nodes, self.status = nodes, status
            if changed or not same_nodes:
                self.version += 1
                delta = {"v": self.version, "t": status.get("now_s"), "jobs": list(changed.values())}
                self._deltas.append((self.version, delta if same_nodes else delta | {"nodes": nodes}))
        for listener in self._listeners:
            listener()

    def refuse(self, why: str, time_s: float) -> None:
        """A plan was refused."""
        self.refusals += 1
        self.refused = time_s, why

    def forget(self, job_id: str) -> None:
        """Nobody but the store knows a job any more."""
        with self._lock:
            self._jobs.pop(job_id, None)

    def jobs(self) -> list[View]:
        """Return all jobs that are known, in no order."""
        with self._lock:
            return list(self._jobs.values())

    def job(self, job_id: str) -> View | None:
        """Return one job."""
        return self._jobs.get(job_id)

    def after(self, version: int) -> list[dict[str, Any]] | None:
        """Return what changed after a version; None if that is not known any more."""
        with self._lock:
            if version > self.version:
                return None
            if version < self.version and (not self._deltas or self._deltas[0][0] > version + 1):
                return None
            return [delta for number, delta in self._deltas if number > version]

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call somebody after every change, in the controller's thread; return what ends that."""
        self._listeners = [*self._listeners, listener]

        def leave() -> None:
            self._listeners = [each for each in self._listeners if each is not listener]

        return leave
