"""The story of every job, and the stretches of held GPUs that follow from it."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.core import story as module
from trainyard.core.story import ALL_DONE, ARRIVED, RESUMED, STARTED, Change, Story
from trainyard.errors import TrainyardError
from trainyard.model.allocation import Allocation, Share
from trainyard.sim.segments import Segment, segments
from trainyard.state.lifecycle import State

S = State
HERE = Allocation((Share("n0", 2, 0, 6.0, 32.0),))
NODES = {"n0": 4, "n1": 4}
BOTH = Allocation((Share("n0", 1, 0, 3.0, 16.0), Share("n1", 3, 1, 9.0, 48.0)))
ROWS = [
    (0.0, "a", None, S.SUBMITTED, "submitted", None),
    (0.0, "b", None, S.SUBMITTED, "submitted", None),
    (1.0, "a", S.WAITING, S.RUNNING, "started", HERE),
    (4.0, "a", S.RUNNING, S.STOPPING, "preempted", HERE),
    (6.0, "a", S.STOPPING, S.WAITING, "stopped and saved", None),
    (6.0, "b", S.WAITING, S.RUNNING, "started", BOTH),
    (6.0, "a", S.WAITING, S.RUNNING, "resumed", HERE),
    (6.0, "a", S.RUNNING, S.CANCELLED, "cancelled by its user", None),
]


def tell(story, row):
    time_s, job_id, before, after, cause, allocation = row
    story.append((time_s, job_id, story.step(before, after, cause), allocation))


def story_of(rows):
    story = Story()
    for row in rows:
        tell(story, row)
    return story


def test_a_story_keeps_every_change_in_order():
    story = story_of(ROWS)
    assert len(list(story)) == len(ROWS)
    assert list(story) == [Change(*row) for row in ROWS]
    assert list(story) == list(story)  # it can be read again


def test_a_job_has_its_own_story():
    story = story_of(ROWS)
    assert story.of("b") == [Change(*ROWS[1]), Change(*ROWS[5])]
    assert len(story.of("a")) == 6
    assert story.of("nobody") == []


def test_an_empty_story():
    assert (list(Story()), Story().of("a")) == ([], [])


@settings(max_examples=40)
@given(st.lists(st.sampled_from(ROWS), max_size=40), st.integers(1, 9), st.integers(1, 5))
def test_packed_or_not_a_story_tells_the_same(rows, block, often):
    """However long blocks are and however often it is packed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        packed = Story()
        for i, row in enumerate(rows):
            tell(packed, row)
            if i % often == 0:
                packed.pack()
                assert len(list(packed)) == i + 1
    assert list(packed) == list(story_of(rows)) == [Change(*row) for row in rows]
    for job_id in ("a", "b", "nobody"):
        assert packed.of(job_id) == [Change(*row) for row in rows if row[1] == job_id]


@pytest.mark.interpreted
def test_a_story_is_packed_in_whole_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 3)
    story = Story()
    for i, row in enumerate(ROWS):
        tell(story, row)
        story.pack()
        assert [len(block.step) for block in story._blocks] == [3] * ((i + 1) // 3)
    assert len(story._cells) < module.WIDTH * module.BLOCK


def test_a_step_is_stored_once(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 2)
    story = Story()
    for row in ROWS * 2:
        tell(story, row)
        story.pack()
    assert len(story._steps) == len(module.OFTEN) + 2  # submitted alone, and cancelled
    assert [change.cause for change in story] == [row[4] for row in ROWS * 2]


def test_a_job_that_arrived_took_two_steps():
    story = Story()
    story.append((7.0, "a", ARRIVED, None))
    assert len(list(story)) == 2
    assert list(map(str, story)) == ["7.000 s: a submitted (submitted)", "7.000 s: a waiting (accepted)"]


def test_common_steps_have_fixed_numbers():
    assert Story().step(S.WAITING, S.RUNNING, "resumed") == RESUMED
    assert Story().step(S.RUNNING, S.DONE, "all work done") == ALL_DONE


def test_a_change_reads_as_a_line():
    assert str(Change(*ROWS[0])) == "0.000 s: a submitted (submitted)"
    assert str(Change(*ROWS[5])) == "6.000 s: b running on n0 x1, n1 x3 (started)"


def test_gpus_are_held_from_a_start_until_they_are_given_back():
    assert list(segments(story_of(ROWS), NODES, 10.0)) == [
        Segment("a", "n0", 2, 1.0, 4.0, (0, 1)),
        Segment("a", "n0", 2, 4.0, 6.0, (0, 1)),  # while it stops
        Segment("b", "n0", 1, 6.0, 10.0, (0,)),  # until the end of the run; the last of `a` took no time
        Segment("b", "n1", 3, 6.0, 10.0, (0, 1, 2)),
    ]


def test_a_job_keeps_its_gpus_while_it_runs_and_later_ones_take_the_lowest_free():
    one, two = (Allocation((Share("n0", n, 0, 3.0, 16.0),)) for n in (1, 2))
    more_cpus = Allocation((Share("n0", 1, 0, 9.0, 16.0), Share("n1", 0, 2, 4.0, 16.0)))
    rows = [
        (0.0, "a", S.WAITING, S.RUNNING, "started", two),
        (1.0, "b", S.WAITING, S.RUNNING, "started", one),
        (2.0, "a", S.RUNNING, S.DONE, "all work done", None),
        (3.0, "b", S.RUNNING, S.RUNNING, "CPUs or memory change", more_cpus),
        (4.0, "c", S.WAITING, S.RUNNING, "started", one),
        (4.0, "d", S.WAITING, S.RUNNING, "started", two),
        (5.0, "b", S.RUNNING, S.RUNNING, "grows", two),
    ]
    assert [(s.job_id, s.start_s, s.indices) for s in segments(story_of(rows), {"n0": 5, "n1": 0}, 9.0)] == [
        ("a", 0.0, (0, 1)),
        ("b", 1.0, (2,)),
        ("b", 3.0, (2,)),
        ("b", 3.0, ()),  # servers alone
        ("c", 4.0, (0,)),
        ("d", 4.0, (1, 3)),
        ("b", 5.0, (2, 4)),
    ]


def test_only_nodes_that_are_asked_for_are_told():
    whole = list(segments(story_of(ROWS), NODES, 10.0))
    for node, gpus in NODES.items():
        assert list(segments(story_of(ROWS), {node: gpus}, 10.0)) == [s for s in whole if s.node == node]


def test_gpus_that_are_not_there_are_not_given():
    with pytest.raises(TrainyardError, match="node n1 has 2 free GPUs, not 3"):
        list(segments(story_of(ROWS), {"n0": 4, "n1": 2}, 10.0))


def test_what_begins_at_the_end_of_the_run_takes_no_time():
    assert list(segments(story_of(ROWS[:6]), NODES, 6.0)) == [
        Segment("a", "n0", 2, 1.0, 4.0, (0, 1)),
        Segment("a", "n0", 2, 4.0, 6.0, (0, 1)),
    ]


@pytest.mark.parametrize("twin_of", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy, copy.copy])
def test_a_copy_of_a_story_goes_on_by_itself(twin_of, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 3)
    story = story_of(ROWS[:4])
    story.pack()
    tell(story, ROWS[4])
    twin = twin_of(story)
    assert list(twin) == list(story)
    tell(twin, ROWS[7])
    tell(story, ROWS[5])
    assert list(twin) == [Change(*row) for row in [*ROWS[:5], ROWS[7]]]
    assert list(story) == [Change(*row) for row in ROWS[:6]]


@pytest.mark.interpreted
def test_a_sink_takes_what_is_older(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 3)
    told = []
    story, whole = Story(told.extend), Story()
    for k in range(10):
        for each in (story, whole):
            step = each.step(S.RUNNING, S.WAITING, f"node n{k} failed")
            each.append((float(k), f"j{k % 2}", step, None))
            each.pack()
    assert told + list(story) == list(whole)
    assert len(list(story)) == 1
    assert [change.time_s for change in story.of("j1")] == [9.0]


@pytest.mark.interpreted
def test_what_happened_to_one_job_is_found_in_any_block(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    story = Story()
    for k in range(30):
        story.append((float(k), f"j{k % 7}", STARTED, None))
        story.pack()
        assert [c.time_s for c in story.of("j3")] == [float(t) for t in range(3, k + 1, 7)]
