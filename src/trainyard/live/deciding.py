"""Asking a policy and writing down what it said; or, when a log is replayed, saying what was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.core.answers import plan_of, plan_record
from trainyard.errors import PlanError, TrainyardError
from trainyard.model.allocation import Plan
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Order
from trainyard.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Recorded:
    """A policy whose plans are written down; the core takes it for one."""

    name: str
    order: Order
    decide: Callable[[Snapshot], Plan]


class Decider:
    """Finds policies by name, and keeps what the last decision said."""

    def __init__(self, find: Callable[[str], Policy] = parse_policy) -> None:
        self._find = find
        self.dictated: Mapping[str, Any] | None = None  # the next plan, if it is known already
        self.last: dict[str, Any] | None = None  # the last one, as a record
        self.took_ms = 0.0

    def policy(self, name: str) -> Recorded:
        """Return a policy by its name; InputError if there is none."""
        policy = self._find(name)
        return Recorded(policy.name, policy.order, lambda view: self._decide(policy, view))

    def _decide(self, policy: Policy, view: Snapshot) -> Plan:
        if self.dictated is not None:
            self.last, self.dictated = dict(self.dictated), None
            return plan_of(self.last, view.nodes)
        began = time.perf_counter()
        try:
            plan = policy.decide(view)
        except TrainyardError as error:
            self.last = {"error": str(error)}
            raise
        except Exception as error:  # of a stage; what was planned before stays
            self.last = {"error": f"policy {policy.name} failed: {type(error).__name__}: {error}"}
            raise PlanError(self.last["error"]) from error
        finally:
            self.took_ms = (time.perf_counter() - began) * 1e3
        self.last = plan_record(plan)
        return plan
