"""A room some of whose nodes are closed, against plain counting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import NodeTable, uniform_cluster
from trainyard.state.room import PartlyClosed, Room, counts_of, total

GPUS = 4
nodes = st.integers(0, 2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("close"), nodes),
        st.tuples(st.just("open"), nodes),
        st.tuples(st.just("take"), nodes, nodes, st.integers(0, 4), st.integers(0, 4)),
        st.tuples(st.just("give")),
        st.tuples(st.just("add"), nodes, st.integers(-2, 2)),
        st.tuples(st.just("restore"), nodes, st.integers(0, 4)),
        st.tuples(st.just("append"), st.integers(0, 9)),
        st.tuples(st.just("copy")),
    ),
    max_size=25,
)


class Model:
    """What nobody holds of each node, and which are closed."""

    def __init__(self):
        self.table = NodeTable(uniform_cluster(3, GPUS))
        self.room = PartlyClosed.like(Room.all_of(self.table))
        self.gpus, self.closed, self.held = [GPUS] * 3, set(), []

    def close(self, i):
        self.room.close(i)
        self.closed.add(i)

    def open(self, i):
        self.room.open(i)
        self.closed.discard(i)

    def take(self, i, k, some, more):
        parts = {i: some} if i == k else {i: some, k: more}
        if all(self.gpus[at] >= gpus for at, gpus in parts.items()):
            shares = tuple(Share(f"GPU-{at}", g, 0, 3.0 * g, 62.5 * g) for at, g in parts.items())
            plain = len(self.held) % 2 == 0
            held = self.table.plain(list(parts.items())) if plain else Allocation(shares)
            self.room.take(self.table, held)
            self.held.append((held, parts))
            self._count(parts, -1)

    def give(self):
        if self.held:
            held, parts = self.held.pop(0)
            self.room.give(self.table, held)
            self._count(parts, 1)

    def _count(self, parts, sign):
        for at, gpus in parts.items():
            self.gpus[at] += sign * gpus

    def add(self, i, gpus):
        if 0 <= self.gpus[i] + gpus <= GPUS - sum(parts.get(i, 0) for _, parts in self.held):
            self.room.add(i, gpus, 3.0 * gpus, 62.5 * gpus)
            self.gpus[i] += gpus

    def restore(self, i, gpus):
        if gpus + sum(parts.get(i, 0) for _, parts in self.held) <= GPUS:
            self.room.restore(i, gpus, 3.0 * gpus, 62.5 * gpus)
            self.gpus[i] = gpus

    def append(self, gpus):
        self.room.append(gpus, 3.0 * gpus, 62.5 * gpus)
        self.gpus.append(gpus)

    def copy(self):
        """Go on with a copy; what happens to the original is nothing to it."""
        before, self.room = self.room, self.room.copy()
        for i in range(3):
            before.open(i)
            before.close(i)

    def check(self):
        room = self.room
        shown = [0 if i in self.closed else g for i, g in enumerate(self.gpus)]
        assert room.gpus == shown
        assert room.total == total(room.levels) == sum(shown)
        assert counts_of(room.levels) == {i: g for i, g in enumerate(shown) if g}
        assert sum(mask.bit_count() for mask in room.levels) == len(shown)
        assert room.cpus == [3.0 * g for g in shown]
        assert room.memory_gb == [62.5 * g for g in shown]
        assert [room.at(i) for i in range(len(shown))] == [(g, 3.0 * g, 62.5 * g) for g in self.gpus]
        assert set(room.closed) == self.closed


@given(steps)
def test_what_is_free_shows_unless_its_node_is_closed(steps):
    model = Model()
    for name, *arguments in steps:
        getattr(model, name)(*arguments)
        model.check()
    for i in range(3):
        model.open(i)
        model.check()


def test_closing_twice_and_opening_what_is_open():
    model = Model()
    for step in (model.close, model.close, model.open, model.open):
        step(1)
        model.check()


def test_a_room_in_which_nodes_can_be_closed_is_the_same_room():
    room = Room.all_of(NodeTable(uniform_cluster(2, 4)))
    room.plain = False
    twin = PartlyClosed.like(room)
    assert (twin.gpus, twin.levels, twin.total, twin.plain) == (room.gpus, room.levels, 8, False)
    assert not twin.copy().plain
