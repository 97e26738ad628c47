"""The core in a real cluster: whatever comes, in whatever order, the books are in order."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos_cases import KINDS, ONE, POLICIES, TWO, Chaos
from trainyard.core.events import DecisionDue
from trainyard.core.twins import state_of

STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1000)), max_size=80)
STALLS = ((0.0, 0.0), (2.0, 30.0))


def check(chaos: Chaos) -> None:
    """No plan was refused; a replay of the log gives the same state and the same answers."""
    assert not chaos.refused
    assert chaos.replayed() == (chaos.look(), chaos.answers)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(POLICIES), st.sampled_from((ONE, TWO)), st.sampled_from(STALLS), st.booleans(), STEPS)
def test_any_events_in_any_order(policy, cluster, stalls, indices, steps):
    chaos = Chaos(policy, cluster, stalls, indices)
    for kind, number in steps:
        chaos.step(kind, number)
    check(chaos)


@pytest.mark.parametrize("seed", range(5))
def test_a_long_life(seed):
    draw = Random(seed)
    chaos = Chaos(POLICIES[seed], (ONE, TWO)[seed % 2], STALLS[seed // 2 % 2], seed % 3 == 0)
    for k in range(300):
        chaos.step(draw.choice(KINDS), draw.randrange(1000))
        if k % 60 == 0:
            look, said = chaos.look(), set()
            for twin in chaos.twins():
                assert json.dumps(state_of(twin), sort_keys=True) == look
                said.add(repr(twin.handle(DecisionDue(chaos.now_s))))
            assert len(said) == 1
            assert chaos.look() == look  # a twin's life is its own
    check(chaos)
