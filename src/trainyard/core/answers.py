"""Plans and instructions as records of a log: what the core answered, to compare and to carry out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from trainyard.core.instructions import Ended, Ignored, Instruction
from trainyard.core.saving import finite
from trainyard.core.wire import plain
from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import NodeTable


def shares_record(allocation: Allocation) -> list[list[Any]]:
    """Return an allocation as plain data."""
    return [list(share) for share in allocation.shares]


def allocation_of(shares: list[list[Any]], nodes: NodeTable) -> Allocation:
    """Return the allocation that a record was made from."""
    allocation = Allocation(tuple(Share(*share) for share in shares))
    if not allocation.servers and nodes.is_proportional(allocation):
        return nodes.plain([(nodes.index[share.node], share.gpus) for share in allocation.shares])
    return allocation


def answer_record(instruction: Instruction) -> dict[str, Any]:
    """Return an instruction as plain data that JSON can hold."""
    record: dict[str, Any] = {"do": type(instruction).__name__}
    if isinstance(instruction, Ignored):
        return record | {"why": instruction.why}
    if isinstance(instruction, Ended):
        return record | {
            "job_id": instruction.job.job_id,
            "state": instruction.state.value,
            "finish_s": instruction.finish_s,
        }
    for field in fields(instruction):
        value = getattr(instruction, field.name)
        record[field.name] = shares_record(value) if field.name == "allocation" else plain(value)
    return record


def plan_record(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data; why jobs wait is not part of it."""
    changes = {job: None if a is None else shares_record(a) for job, a in plan.changes.items()}
    return {"changes": changes, "wake_s": plain(plan.wake_s), "notes": finite(plan.notes)}


def plan_of(record: Mapping[str, Any], nodes: NodeTable) -> Plan:
    """Return the plan that a record was made from; PlanError if there was none."""
    if "error" in record:
        raise PlanError(record["error"])
    changes = {
        job: None if shares is None else allocation_of(shares, nodes)
        for job, shares in record["changes"].items()
    }
    return Plan(changes, float(record["wake_s"]), record["notes"])
