"""A plan in the making: jobs are tried on the free room itself, and every try can be undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation, Part
from trainyard.model.cluster import NodeTable
from trainyard.model.refusal import Refusal
from trainyard.policy.request import Request
from trainyard.state.room import PartlyClosed, Room, first
from trainyard.state.snapshot import Snapshot

Find = Callable[[Request, Room, NodeTable, int], Allocation | None]
GIVEN_OR_TAKEN = {-1: "given: there are not so many", 1: "taken back: it does not have so many"}


class Draft:
    """Changes that are still being made, and the room that they leave.

    The room is the snapshot's own, lent for one decision: `close` leaves it as it was. What a place stage
    found last is taken out only when somebody looks again, as often nobody does.
    """

    __slots__ = ("_before", "_latest", "_plain", "_room", "changes", "view", "why")

    def __init__(self, view: Snapshot, explain: bool = False) -> None:
        self.view = view
        self.changes: dict[str, Allocation | None] = {}
        self.why: dict[str, Refusal] | None = {} if explain else None  # of jobs that were refused, if asked
        self._room = view.free
        self._plain = view.free.plain
        self._before: dict[int, tuple[int, float, float]] = {}  # what was free of the nodes that changed
        self._latest: tuple[Request, Allocation] | None = None

    @property
    def room(self) -> Room:
        """What the changes leave free."""
        if self._latest is not None:
            request, allocation = self._latest
            self._latest = None
            if request.cpus_per_gpu is not None or request.memory_per_gpu is not None:
                self._room.plain = False  # from now on a free GPU does not mean that its share is free
            self._add(request.job.job_id, allocation, -1)
        return self._room

    def release(self, job_id: str) -> None:
        """Take back what a job has, or was given in this draft."""
        changes, target = self.changes, self.view.target
        if self._latest is not None and self._latest[0].job.job_id == job_id:
            self.take_back()
            return
        held = changes[job_id] if job_id in changes else target[job_id]
        if held is None:
            raise PlanError(f"job {job_id} has nothing any more that could be taken back")
        self._add(job_id, held, 1)
        if job_id in target:
            changes[job_id] = None
        else:
            del changes[job_id]

    def try_(self, find: Find, request: Request) -> Allocation | None:
        """Give the job what it asks for, if a place stage finds nodes for it."""
        allocation = self.look(find, request)
        if allocation is not None:
            self._latest = request, allocation
            self.changes[request.job.job_id] = allocation
        return allocation

    def look(self, find: Find, request: Request) -> Allocation | None:
        """Return what a place stage finds for a job, which is not given to it yet."""
        view, room = self.view, self._room if self._latest is None else self.room
        if view.bars is None and view.shuns is None:
            return find(request, room, view.nodes, view.rules.seed)
        shunned = 0 if view.shuns is None else view.shuns.get(request.job.job_id, 0)
        found = self._find_allowed(find, request, room, shunned) if shunned else None
        return self._find_allowed(find, request, room, 0) if found is None else found

    def _find_allowed(self, find: Find, request: Request, room: Room, mask: int) -> Allocation | None:
        """Look only at nodes that are not reserved for others, now or before the job would be off them."""
        view, bars, record = self.view, self.view.bars, self.view.table.of[request.job.job_id]
        if bars is None:
            return self._find_beside(mask, find, request, room)
        mask |= bars.of(record, view.now_s, 0.0)
        while True:
            found = self._find_beside(mask, find, request, room)
            if found is None or record.job.preemptible or not view.speed.rate(record.job, found) > 0:
                return found
            shut = bars.of(record, view.now_s, view.runs_s(record, found))
            if not any(shut >> view.nodes.index[share.node] & 1 for share in found.shares):
                return found
            mask |= shut

    def _find_beside(self, mask: int, find: Find, request: Request, room: Room) -> Allocation | None:
        """Look only at other nodes than these."""
        view, closed = self.view, list[int]()
        assert isinstance(room, PartlyClosed)  # a yard with reservations, or failed starts, has such a room
        while mask:
            i = first(mask)
            mask &= mask - 1
            if i not in room.closed:
                closed.append(i)
                room.close(i)
        try:
            return find(request, room, view.nodes, view.rules.seed)
        finally:
            for i in closed:
                room.open(i)

    def barred(self, find: Find, request: Request) -> bool:
        """Whether only reservations keep a job from what it asks for, which it did not find."""
        view = self.view
        return view.bars is not None and find(request, self.room, view.nodes, view.rules.seed) is not None

    def commit(self, request: Request, allocation: Allocation) -> None:
        """Give the job what was found for it."""
        self._latest = request, allocation
        self.changes[request.job.job_id] = allocation

    def take_back(self) -> None:
        """Undo the latest try."""
        assert self._latest is not None
        job_id, self._latest = self._latest[0].job.job_id, None
        if job_id in self.view.target:
            self.changes[job_id] = None  # as it was released before
        else:
            del self.changes[job_id]

    def undo(self) -> None:
        """Undo everything."""
        room = self._room
        for i, free in self._before.items():
            room.restore(i, *free)
        room.plain = self._plain
        self._before.clear()
        self._latest = None
        self.changes = {}

    def rewrite(self, changes: Mapping[str, Allocation | None]) -> None:
        """Put other changes in place of all."""
        self.undo()
        self.changes = dict(changes)
        for job_id in changes:
            if job_id in self.view.target:
                self._add(job_id, self.view.target[job_id], 1)
        for job_id, allocation in changes.items():
            if allocation is not None:
                self._add(job_id, allocation, -1)
                self._room.plain &= self.view.nodes.is_proportional(allocation)

    def trespasses(self) -> bool:
        """Whether a job would begin to use a node that it may not."""
        view = self.view
        if view.bars is None and not isinstance(view.free, PartlyClosed):
            return False
        return any(
            allocation is not None and view.intrudes(view.table.of[job_id], allocation)
            for job_id, allocation in self.changes.items()
        )

    def close(self) -> dict[str, Allocation | None]:
        """Return the changes, and the room as it was."""
        changes = self.changes
        if self._before or self._room.plain is not self._plain:
            self.undo()
        return changes

    def _add(self, job_id: str, allocation: Allocation, sign: int) -> None:
        room, before = self._room, self._before
        for i, gpus, cpus, memory_gb in allocation.plain or self._parts(job_id, allocation):
            had = room.at(i)
            # What a stage made up must not spoil the room that is only lent.
            if not 0 <= had[0] + sign * gpus < len(room.levels):
                raise _made_up(job_id, gpus, self.view.nodes.ids[i], sign)
            if i not in before:
                before[i] = had
            room.add(i, sign * gpus, sign * cpus, sign * memory_gb)

    def _parts(self, job_id: str, allocation: Allocation) -> list[Part]:
        nodes = self.view.nodes
        for share in allocation.shares:
            if share.node not in nodes.index:
                raise _made_up(job_id, share.gpus, share.node, -1)
        return nodes.parts(allocation)


def _made_up(job_id: str, gpus: int, node: str, sign: int) -> PlanError:
    return PlanError(f"job {job_id}: {gpus} GPUs of node {node} cannot be {GIVEN_OR_TAKEN[sign]}")
