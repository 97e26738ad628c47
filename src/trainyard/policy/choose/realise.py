"""From who should run to where: what is new or changed is placed, all others keep their nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainyard.model.arrays import Ints, Mask
from trainyard.model.job import Job
from trainyard.policy.choose.reasons import found_no_place
from trainyard.policy.choose.selection import Choice, Selection
from trainyard.policy.choose.sizes import sizes_to_try
from trainyard.policy.draft import Draft
from trainyard.policy.request import Request
from trainyard.policy.tune.proportional import proportional_request
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.room import Room

C = Column


class Realisation:
    """Places the jobs of a choice on the room of a draft."""

    def __init__(self, selection: Selection, draft: Draft) -> None:
        self.selection = selection
        self.policy = selection.policy
        self.snapshot = selection.snapshot
        self.table = selection.table
        self.draft = draft

    def place(self, choice: Choice) -> Mask | None:
        """Draft what is new or changed; return which jobs found no place, None if all did."""
        changed, target, draft = self._changed(choice), choice.target, self.draft
        rows = changed.nonzero()[0]
        if not rows.size:
            return None
        for row in rows[self.selection.given[rows] > 0].tolist():
            draft.release(self.table.jobs[row].job_id)
        if rows.size > 1:
            rows = choice.rows[changed[choice.rows]]
        failed: Mask | None = None
        for row in rows[target[rows] > 0].tolist():
            if failed is not None and failed[row]:
                continue
            if not self._put(row, choice):
                found_no_place(self.policy, draft, self.table.records[row])
                alike = self._alike(row)
                failed = alike if failed is None else failed | alike
        return failed

    def _changed(self, choice: Choice) -> Mask:
        """Rows that should have other than what they hold."""
        changed: Mask = choice.target != self.selection.given
        if choice.types is not None:
            changed |= choice.types >= 0
        if choice.moves is not None:
            changed |= choice.moves
        if choice.servers is not None:
            changed |= self._other_servers(choice.servers)
        return changed

    def _other_servers(self, servers: Ints) -> Mask:
        """Rows of jobs that run with other parameter servers than they should."""
        other: Mask = np.zeros(servers.size, dtype=np.bool_)
        for row in servers.nonzero()[0].tolist():
            given = self.snapshot.target.get(self.table.jobs[row].job_id)
            other[row] = given is not None and given.servers != servers[row]
        return other

    def _put(self, row: int, choice: Choice) -> bool:
        """Place one job."""
        if choice.by_type is not None:
            return self._put_by_type(row, tuple(choice.by_type[row].tolist()))
        type_ = -1 if choice.types is None else int(choice.types[row])
        servers = 0 if choice.servers is None else int(choice.servers[row])
        return self._put_some(row, int(choice.target[row]), type_, servers)

    def _put_some(self, row: int, gpus: int, gpu_type: int, servers: int) -> bool:
        """Place so many GPUs, of the chosen type or, where only this lacks CPUs or memory, of another."""
        record, policy, draft = self.table.records[row], self.policy, self.draft
        own_type = record.type_index
        types = (own_type,) if gpu_type in (-1, own_type) else (gpu_type, own_type)
        for size, some in self._sizes(record, gpus, servers):
            for type_ in types:
                request = policy.tune.request(self.snapshot, record.job, size, type_)
                if some:
                    request = request._replace(servers=some)
                if draft.try_(policy.place.find, request) is not None:
                    return True
        return False

    def _sizes(self, record: Record, gpus: int, servers: int) -> Iterator[tuple[int, int]]:
        """Sizes to try with their servers; the smallest also with fewer of these."""
        some = servers
        for size in sizes_to_try(record.job, gpus, self.policy.size.smaller):
            some = max(1, round(servers * size / gpus)) if servers else 0
            yield size, some
        while some > 1:
            some //= 2
            yield size, some

    def _put_by_type(self, row: int, by_type: tuple[int, ...]) -> bool:
        """Place one job whose GPUs of each type are settled; of several ways, the fastest."""
        record, draft, snap, best, speed = self.table.records[row], self.draft, self.snapshot, None, 0.0
        job, find = record.job, self.policy.place.find_by_type
        for tried in self._cuts(job, by_type, draft.room):
            request = self._request(record, tried)
            found = draft.look(find, request)
            if found is not None and (rate := snap.speed.rate(job, found)) > speed:
                best, speed = (request, found), rate
        if best is None:
            return False
        draft.commit(*best)
        return True

    def _request(self, record: Record, by_type: tuple[int, ...]) -> Request:
        """What to ask for; its share has to do for a job that wants more than these GPUs ever come with."""
        snap, policy, job, gpus = self.snapshot, self.policy, record.job, sum(by_type)
        request = policy.tune.request(snap, job, gpus, record.type_index)._replace(by_type=by_type)
        if policy.tune.by_gpus or policy.place.find_by_type(request, Room.all_of(snap.nodes), snap.nodes, 0):
            return request
        return proportional_request(job, gpus, record.type_index)._replace(by_type=by_type)

    def _cuts(self, job: Job, by_type: tuple[int, ...], room: Room) -> Iterator[tuple[int, ...]]:
        """The GPUs as settled; where these must span nodes, also as many as one node can take."""
        yield by_type
        if self.policy.size.cuts and sum(n > 0 for n in by_type) == 1:
            type_ = next(t for t, n in enumerate(by_type) if n)
            mask = self.snapshot.nodes.mask_of_type[type_]
            most = max((f for f, level in enumerate(room.levels) if level & mask), default=0)
            most = job.allowed(most)
            if 0 < most < by_type[type_]:
                yield tuple(most if t == type_ else 0 for t in range(len(by_type)))

    def _alike(self, row: int) -> Mask:
        """A job that found no place, and waiting ones that ask for the same: they would find none either."""
        job, wanted, type_ = self.table.jobs[row], self.table.column(C.GPUS), self.table.column(C.TYPE)
        alike: Mask = np.zeros(wanted.size, dtype=np.bool_)
        if self.policy.size.whole_gangs and not job.particular and self.snapshot.bars is None:
            alike = (wanted == wanted[row]) & (type_ == type_[row]) & (self.selection.given == 0)
            if not self.policy.tune.by_gpus:
                content = job.content
                alike &= [other.content is content for other in self.table.jobs]
            for job_id in self.draft.changes:
                alike[self.table.of[job_id].row] = False  # placed before this one
        alike[row] = True
        return alike
