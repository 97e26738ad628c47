"""The learning environment for tools that expect one of Gymnasium, which is optional."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainyard.errors import InputError
from trainyard.learn.batch import Reward
from trainyard.learn.episode import Scenario

if TYPE_CHECKING:
    from trainyard.learn.gym_env import Encoding, SlotEnv


def slot_env(
    scenario: Callable[[int], Scenario],
    most_jobs: int = 20,
    reward: Reward = "job-slots",
    encoding: Encoding = "rows",
) -> SlotEnv:
    """Return a `gymnasium.Env` that plays one episode at a time, `scenario(i)` being the i-th."""
    try:
        from trainyard.learn.gym_env import SlotEnv
    except ModuleNotFoundError:
        raise InputError("gymnasium is not installed; pip install 'trainyard[learn]'") from None
    return SlotEnv(scenario, most_jobs, reward, encoding)
