"""Many episodes at once: one decision of each in a step, so that a network is asked once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from trainyard.errors import TrainyardError
from trainyard.learn.episode import Episode, Outcome, Scenario
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import STOP, Observation, Slots

Reward = Literal["job-slots", "delay", "progress"]


class Step(NamedTuple):
    """What came of one decision of each episode.

    Rewards come at the end of a slot and are zero before, but for `delay`: what a job is known to gain in the
    slot by an action comes with the action, and the rest at the end.
    """

    job_slots: Floats  # minus the job-slots spent; their sum over an episode is minus the sum of all JCTs
    delay: Floats  # the same without the work done, in slots at each job's peak: minus JCT over the ideal
    progress: Floats  # work done, each job's whole being one: the paper's reward
    slot_end: Mask
    done: Mask  # the episode is over; what is observed now is the next one's first slot

    def reward(self, kind: Reward) -> Floats:
        """Return the rewards of one kind."""
        return {"job-slots": self.job_slots, "delay": self.delay, "progress": self.progress}[kind]


class BatchEnv:
    """Episodes side by side. `scenario(i)` gives the i-th; row b plays b, b + batch, b + 2 batch, ...

    With `episodes` there are only that many: a row that has none left is idle, its only legal action is stop,
    and nothing comes of it.
    """

    def __init__(
        self,
        scenario: Callable[[int], Scenario],
        batch: int,
        policy: Policy | None = None,
        features: Features | None = None,
        start: bool = True,
        episodes: int | None = None,
    ) -> None:
        self.batch = batch
        self.outcomes: list[Outcome] = []  # of the episodes that ended, in the order in which they did
        self.slots = Slots(batch, features or Features())
        self.episodes: list[Episode | None] = [None] * batch  # None: idle
        self._scenario = scenario
        self._policy = policy or Policy("dl2")
        self._start = start
        self._last = episodes
        self._rows: Ints = np.arange(batch)
        self._told: Floats = np.zeros(batch)  # delay of the slot that was rewarded already

    @property
    def idle(self) -> bool:
        """Whether all episodes are over."""
        return not any(self.episodes)

    def reset(self) -> Observation:
        """Begin with the first episodes."""
        self.outcomes = []
        for b in range(self.batch):
            self._begin(b, b)
        return self.slots.observe()

    def step(self, actions: Ints) -> tuple[Observation, Step]:
        """Take one legal action in each episode; a slot also ends when nothing but stop is legal any more."""
        step = Step(*np.zeros((3, self.batch)), *np.zeros((2, self.batch), dtype=np.bool_))
        ends: Mask = actions == STOP
        goes_on = self._rows[~ends]
        if goes_on.size:
            which = goes_on, (actions[goes_on] - 1) // ACTIONS
            before = self.slots.delay(*which)
            self.slots.act(goes_on, actions[goes_on])
            step.delay[goes_on] = before - self.slots.delay(*which)
            self._told[goes_on] += step.delay[goes_on]
        seen = self.slots.observe()
        ends |= ~seen.mask[:, 1:].any(axis=1)
        for episode in self.episodes:
            if episode is not None:
                episode.decisions += 1
        if not ends.any():
            return seen, step
        for b in self._rows[ends].tolist():
            self._end_slot(b, step)
        return self.slots.observe(), step

    def _end_slot(self, b: int, step: Step) -> None:
        """Run the slot and open the next one, of the next episode if this one is over."""
        episode = self.episodes[b]
        if episode is None:
            return
        began_s, left = episode.simulator.now_s, float(self.slots.left[b].sum())
        episode.close(self.slots.rows[b], self.slots.shapes(b))
        over = not self._open(b, episode)
        step.job_slots[b], step.progress[b] = episode.rewards()
        still = 0.0 if over else float(self.slots.left[b][episode.arrivals() <= began_s].sum())
        step.delay[b] += step.job_slots[b] + left - still - self._told[b]
        self._told[b] = 0.0
        step.slot_end[b], step.done[b] = True, over
        if over:
            self.outcomes.append(episode.outcome())
            self._begin(b, episode.number + self.batch)

    def _begin(self, b: int, number: int) -> None:
        """Begin an episode in row b, or leave it idle."""
        if self._last is not None and number >= self._last:
            self.episodes[b] = None
            self.slots.clear(b)
            return
        episode = self.episodes[b] = Episode(number, self._scenario(number), self._policy)
        if not self._open(b, episode):
            raise TrainyardError(f"episode {number} has no jobs")

    def _open(self, b: int, episode: Episode) -> bool:
        found = episode.open()
        if found is None:
            return False
        self.slots.open(b, *found, episode.slot_s, self._start)
        return True
