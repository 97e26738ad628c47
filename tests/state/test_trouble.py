"""What went wrong with one job."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.state.lifecycle import State
from trainyard.state.trouble import Trouble

finite = st.floats(allow_nan=False, allow_infinity=False)
troubles = st.builds(
    Trouble,
    counted=st.integers(0, 9),
    idle=st.integers(0, 9),
    failed_starts=st.integers(0, 9),
    unsaved=st.integers(0, 9),
    reached=finite,
    until_s=finite,
    again_s=finite,
    unmet=st.dictionaries(st.text(), st.sampled_from(["ok", "failed", "any"])),
    code=st.text(),
    text=st.text(),
    ending=st.none() | st.sampled_from(State),
    on=st.none() | st.sets(st.text()),
)


@given(troubles)
def test_what_is_written_is_read_again(trouble):
    back = Trouble.of(json.loads(json.dumps(trouble.record(), allow_nan=False)))
    assert back == trouble
    assert (type(back.ending), type(back.on)) == (type(trouble.ending), type(trouble.on))


@given(troubles)
def test_a_copy_is_the_same_and_shares_nothing(trouble):
    before, twin = repr(trouble), trouble.copy()
    assert twin == trouble
    twin.unmet["new"] = "ok"
    if twin.on is not None:
        twin.on.add("new")
    twin.counted += 1
    twin.blame("new", "new")
    assert repr(trouble) == before


def test_no_trouble_is_an_empty_record():
    assert Trouble().record() == {}
    assert Trouble(on=set()).record() == {"on": []}  # on none, which is not on all


def test_a_job_begins_without_any():
    new = Trouble()
    assert (new.counted, new.idle, new.failed_starts, new.unsaved) == (0, 0, 0, 0)
    assert (new.reached, new.until_s, new.again_s) == (-1.0, 0.0, 0.0)
    assert (new.unmet, new.code, new.text, new.ending, new.on) == ({}, "", "", None, None)


@pytest.mark.parametrize(
    ("unsaved", "times"),
    [
        (0, 1.0),
        (2, 1.0),
        (3, 2.0),
        (4, 4.0),
        (6, 16.0),
        (11, 512.0),
        (12, 1024.0),
        (13, 1024.0),
        (99, 1024.0),
    ],
)
def test_who_saves_nothing_too_often_may_take_longer_to_stop(unsaved, times):
    assert Trouble(unsaved=unsaved).patience(3) == times
