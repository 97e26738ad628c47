"""Every number that a stage takes has bounds, and is refused beyond them when the policy is read."""

from __future__ import annotations

from typing import get_origin

import pytest

from trainyard.errors import InputError
from trainyard.policy.grammar import parse_policy
from trainyard.policy.parameters import bare, parameters_of
from trainyard.policy.registry import ENTRIES

# What a parameter needs beside it to be allowed at all.
BESIDE = {
    "explore_s": {"optimus": ",mode=learn", "doubling": ",mode=explore"},
    "k": {"smd": ",solver=frieze-clarke"},
}
NUMBERS = [
    (entry.name, name)
    for entry in ENTRIES.values()
    for name, kind in parameters_of(entry.make).items()
    if bare(kind) in (int, float) or get_origin(bare(kind)) is tuple
]


@pytest.mark.parametrize(("stage", "name"), NUMBERS)
@pytest.mark.parametrize("value", ["1e-300", "-1e300", "1e300", "12345678901234567890", "nan", "inf"])
def test_no_number_of_a_stage_is_without_bounds(stage, name, value):
    beside = BESIDE.get(name, {}).get(stage, "")
    if (name, value) in NEXT_TO_NOTHING:
        parse_policy(f"{stage}({name}={value}{beside})")
        return
    with pytest.raises(InputError, match=stage):
        parse_policy(f"{stage}({name}={value}{beside})")


NEXT_TO_NOTHING = {
    ("gamma", "1e-300"),
    ("beta", "1e-300"),
    ("inertia", "1e-300"),
}  # as good as 0, which is allowed


def test_rounds_of_nothing_are_refused():
    with pytest.raises(
        InputError, match=r"stage gavel: round_s=1e-09 is too small; give a number from 1 to 1e[+]12"
    ):
        parse_policy("gavel(round_s=1e-9)")
