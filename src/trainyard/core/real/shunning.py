"""Where a job could not be started, others of its nodes come first at the next try."""

from __future__ import annotations

from trainyard.core.works import Works
from trainyard.state.record import Record
from trainyard.state.room import PartlyClosed


def shun(yard: Works, record: Record) -> None:
    """A start failed on the nodes that a job occupies."""
    trouble = record.troubles()
    nodes = () if record.occupies is None else tuple(share.node for share in record.occupies.shares)
    trouble.shuns = tuple(sorted({*trouble.shuns, *nodes}))
    see_shuns(yard)


def see_shuns(yard: Works) -> None:
    """Let policies see who shuns which nodes; nodes that left are nobody's concern any more."""
    view, index = yard.view, yard.nodes.index
    masks = {
        record.job_id: sum(1 << index[node] for node in record.trouble.shuns if node in index)
        for record in (*yard.table.records, *yard.parked.values())
        if record.trouble is not None and record.trouble.shuns
    }
    view.shuns = masks or None
    if masks and not isinstance(yard.free, PartlyClosed):
        yard.free = view.free = PartlyClosed.like(yard.free)
