"""What a learner in the background is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainyard.learn.history import Block, Decided
from trainyard.model.arrays import Floats
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import Singles
from trainyard.policy.size.dl2.weights import Weights


@dataclass(frozen=True, slots=True)
class LearnRequest:
    """All that a lesson needs."""

    number: int
    seed: int
    iterations: int
    policy: Policy  # as it runs now; its size stage is dl2
    values: Mapping[str, Singles] | None  # what was learnt of values before
    cluster: Cluster
    slot_s: float
    costs: Rules
    learnt: Sequence[Block]
    judged: Sequence[Block]  # never learnt from
    jobs: Sequence[Job]  # all that came, for those who look back
    slots: Sequence[Decided]


class Answer(NamedTuple):
    """What came of a lesson."""

    weights: Weights | None  # the candidate; None if nothing was found that seems better
    values: Mapping[str, Singles]
    current: Floats  # average JCT in slots, by episode that judges
    candidate: Floats
