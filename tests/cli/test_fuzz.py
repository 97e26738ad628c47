"""A sample of `make fuzz`: whatever is odd about the input, exit code 0 or 2, and one line if it is 2."""

from __future__ import annotations

import pytest

from fuzz_cases import judged, made

CASES = 120
SEED = 16


@pytest.mark.parametrize("first", range(1, CASES + 1, 30))
def test_odd_input_never_makes_a_command_fall_over(tmp_path, first):
    for number in range(first, first + 30):
        verdict = judged(SEED, number, tmp_path)
        assert not verdict.wrong, (
            f"bench/fuzz.py --seed {SEED} --only {number}: {verdict.outcome}\n{verdict.said}"
        )


def test_a_case_can_be_repeated():
    one, other = made(SEED, 7), made(SEED, 7)
    assert one == other
