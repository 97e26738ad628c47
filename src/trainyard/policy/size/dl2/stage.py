"""Size stage: DL2. A trained network grows jobs one task at a time until it says stop.

It was trained for some kinds of jobs and not for others: where too many are unlike what it has seen, another
stage decides, and the plan's notes say so. Among many jobs several actions are taken at once, of different
jobs: one hardly changes what is best for the others.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NewType

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.size.dl2.arrays import ACTIONS, Singles
from trainyard.policy.size.dl2.slot import STOP, Slots
from trainyard.policy.size.dl2.weights import Weights, load_weights
from trainyard.policy.size.drf import Drf
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.size.lookahead import Lookahead
from trainyard.policy.size.optimus import Optimus
from trainyard.policy.stages import FALLBACK, Chosen, Shapes, Size
from trainyard.state.beliefs import Told
from trainyard.state.snapshot import Snapshot

Text = NewType("Text", str)  # a parameter that may be any text
FALLBACKS: dict[str, type[Drf] | type[Lookahead] | type[Optimus]] = {
    "drf": Drf,
    "lookahead": Lookahead,
    "optimus": Optimus,
}
STRANGE = 0.1  # of the jobs may be unlike those in training
MARGIN = 0.5  # of the range in training, that a number may be outside of it
LEAST_MARGIN = 0.02
AT_ONCE = 16  # jobs for each action that is taken at the same time


class Taken(NamedTuple):
    """One decision of the network: what it saw, what it did, and how likely that was."""

    jobs: Singles  # (J, features of a job)
    cluster: Singles  # (features of a cluster,)
    mask: Mask  # (1 + 3 J,): what was legal
    action: int
    log_prob: float


class Dl2(Size):
    """Shapes by a trained network: `weights` are a name or a file, `draw` how an action is chosen."""

    def __init__(
        self,
        weights: Text = Text("paper"),
        draw: Literal["sample", "best"] = "sample",
        fallback: Literal["drf", "lookahead", "optimus"] = "drf",
    ) -> None:
        self.weights: Weights = load_weights(weights)
        self.draw = draw
        self.fallback = fallback
        self.asked = self.left = 0  # decisions so far, and those that the fallback took
        self.taken: list[Taken] | None = None  # the latest decisions, if they are learnt from
        self._slots: Slots | None = None  # only to spare work: speeds of kinds of jobs that were there before
        self._speed: object = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "taken": None, "_slots": None, "_speed": None}

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs and servers for each ranked row."""
        if not ranked.size:
            return Chosen(Shapes(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)))
        if self.taken is not None:
            self.taken = []
        slots = self._open(snapshot, ranked)
        doubt = self._doubt(slots)
        self.asked += 1
        if doubt:
            self.left += 1
            chosen = FALLBACKS[self.fallback]().shapes(snapshot, ranked)
            said = {"dl2": f"{self.fallback} decided: {doubt}", FALLBACK: self.fallback}
            return chosen._replace(notes={**chosen.notes, **said})
        decide(slots, self.weights, self._random(snapshot), self.taken)
        return Chosen(settled(snapshot, ranked, slots.shapes(0)))

    def _open(self, snapshot: Snapshot, ranked: Ints) -> Slots:
        if self._slots is None or self._speed is not snapshot.speed:
            self._slots, self._speed = Slots(1, self.weights.features()), snapshot.speed
        self._slots.open(0, snapshot, ranked, snapshot.rules.round_s or self.weights.slot_s)
        return self._slots

    def _random(self, snapshot: Snapshot) -> np.random.Generator | None:
        """Draws that only depend on the seed and the time."""
        if self.draw == "best":
            return None
        return np.random.default_rng([snapshot.rules.seed, int(snapshot.now_s * 1e3)])

    def _doubt(self, slots: Slots) -> str:
        """Say what keeps the network from deciding, if anything does."""
        n, labels, moving = int(slots.count[0]), slots.features.labels, slots.features.moving
        numbers, low, high = slots.jobs.features[0, :n], self.weights.low, self.weights.high
        margin = np.maximum(MARGIN * (high - low), LEAST_MARGIN)
        outside: Mask = (numbers < low - margin) | (numbers > high + margin)
        outside[:, moving] = False
        strange = int(outside.any(axis=1).sum())
        if strange <= STRANGE * n:
            return ""
        worst = int(outside.sum(axis=0).argmax())
        return f"{strange} of {n} jobs are unlike those of the training ({labels[worst]})"


def decide(
    slots: Slots, weights: Weights, rng: np.random.Generator | None, taken: list[Taken] | None = None
) -> int:
    """Grow the jobs of slot 0 until the network says stop or nothing fits; return how often it was asked."""
    network, n, asked = weights.network(), int(slots.count[0]), 0
    network.open(np.clip(slots.jobs.features[0, :n], weights.low, weights.high))
    while True:
        mask = slots.observe().mask[0, : 1 + ACTIONS * n]
        if not mask[1:].any():
            return asked
        asked += 1
        cluster = np.clip(slots.cluster[0], weights.low_cluster, weights.high_cluster)
        logits = np.where(mask, network.logits(cluster), -np.inf)
        scores = logits.copy()
        if rng is not None:
            scores -= np.log(rng.standard_exponential(scores.size))
        actions = _best(scores, max(1, n // AT_ONCE))
        actions = actions[: _fitting(slots, actions)]
        if taken is not None:
            seen = np.clip(slots.jobs.features[0, :n], weights.low, weights.high)
            # Of several at once the first is the one that was drawn among all.
            first = int(actions[0]) if actions.size else STOP
            taken.append(Taken(seen, cluster, mask, first, _log_prob(logits, first) if rng else 0.0))
        if not actions.size:
            return asked
        slots.act(np.zeros_like(actions), actions)
        jobs = (actions - 1) // ACTIONS
        network.change(jobs, np.clip(slots.jobs.features[0, jobs], weights.low, weights.high))


def _best(scores: Floats, most: int) -> Ints:
    """The best actions of different jobs, the best first, up to stop."""
    if most == 1:
        best = int(scores.argmax())
        return np.array([best] if best != STOP else [], dtype=np.int64)
    each = scores[1:].reshape(-1, ACTIONS)
    which = each.argmax(axis=1)
    score = each[np.arange(which.size), which]
    order = np.argsort(-score, kind="stable")[:most]
    order = order[score[order] > scores[STOP]]
    actions: Ints = 1 + ACTIONS * order + which[order]
    return actions


def _log_prob(logits: Floats, action: int) -> float:
    top = logits.max()
    return float(logits[action] - top - np.log(np.exp(logits - top).sum()))


def _fitting(slots: Slots, actions: Ints) -> int:
    """How many of these there is room for, one after the other."""
    if actions.size < 2:
        return actions.size
    jobs, which = np.divmod(actions - 1, ACTIONS)
    fits = (slots.jobs.needs[0, jobs, which].cumsum(axis=0) <= slots.room[0]).all(axis=1)
    return actions.size if fits.all() else int(fits.argmin())


def settled(snapshot: Snapshot, ranked: Ints, shapes: Shapes) -> Shapes:
    """Leave jobs as they are where a restart costs more than the new size brings."""
    jobs = snapshot.table.jobs
    costs = any(snapshot.restart_cost(jobs[row]) for row in ranked.tolist())
    return settle(Told(snapshot), ranked, shapes) if costs else shapes
