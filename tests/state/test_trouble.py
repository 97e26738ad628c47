"""What went wrong with one job."""

from __future__ import annotations

import json

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
