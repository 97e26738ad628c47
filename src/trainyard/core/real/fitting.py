"""Jobs that fit nowhere: nodes were taken out of the cluster, and what is left could not run them even alone.

They wait where no policy sees them, so that they block nobody, until a node joins on which they fit.
"""

from __future__ import annotations

from dataclasses import replace

from trainyard.core.real.parking import park, unpark
from trainyard.core.works import Works
from trainyard.files.job_check import JobCheck
from trainyard.model.spoken import moment
from trainyard.state.lifecycle import TERMINAL, State
from trainyard.state.record import Record


def look_at_all(yard: Works, now: float) -> None:
    """Nodes left or joined: see who fits nowhere any more, and who fits again."""
    for record in (*yard.table.records, *yard.parked.values()):
        look_at(yard, record, now)


def look_at(yard: Works, record: Record, now: float) -> None:
    """Park a job that fits nowhere, or let it be planned again; who runs has its place."""
    if record.state is State.RUNNING or record.state in TERMINAL:
        return
    why, before = _why(yard, record), "" if record.trouble is None else record.trouble.unfit
    if why or before:
        if not why or not before.startswith(f"{why} since "):
            record.troubles().unfit = f"{why} since {moment(now)}" if why else ""
        if why:
            park(yard, record, now)
        else:
            unpark(yard, record, now)


def _why(yard: Works, record: Record) -> str:
    """Say why a job fits nowhere; nothing if it does."""
    cluster, away = yard.cluster, yard.conditions.away
    check = yard.view.caches.get(_why)
    if check is None or check[0] is not cluster or check[1] != away:
        there = tuple(node for node in cluster.nodes if node.node_id not in away)
        check = yard.view.caches[_why] = cluster, away.copy(), JobCheck(replace(cluster, nodes=there))
    lack = check[2].lack(record.job)
    if lack is None:
        return ""
    unknown = lack.field == "gpu_type"
    return f"needs {record.job.gpu_type} GPUs; the cluster has none" if unknown else lack.what
