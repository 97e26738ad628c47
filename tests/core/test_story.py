"""The story of every job, and the stretches of held GPUs that follow from it."""

from __future__ import annotations

from trainyard.core.story import Change, Story
from trainyard.model.allocation import Allocation, Share
from trainyard.sim.result import Segment, segments
from trainyard.state.lifecycle import State

S = State
HERE = Allocation((Share("n0", 2, 0, 6.0, 32.0),))
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


def story_of(rows):
    story = Story()
    for row in rows:
        story.append(row)
    return story


def test_a_story_keeps_every_change_in_order():
    story = story_of(ROWS)
    assert len(story) == len(ROWS)
    assert list(story) == [Change(*row) for row in ROWS]
    assert list(story) == list(story)  # it can be read again


def test_a_job_has_its_own_story():
    story = story_of(ROWS)
    assert story.of("b") == [Change(*ROWS[1]), Change(*ROWS[5])]
    assert len(story.of("a")) == 6
    assert story.of("nobody") == []


def test_an_empty_story():
    assert (len(Story()), list(Story()), Story().of("a")) == (0, [], [])


def test_a_change_reads_as_a_line():
    assert str(Change(*ROWS[0])) == "0.000 s: a submitted (submitted)"
    assert str(Change(*ROWS[5])) == "6.000 s: b running on n0 x1, n1 x3 (started)"


def test_gpus_are_held_from_a_start_until_they_are_given_back():
    assert list(segments(story_of(ROWS), 10.0)) == [
        Segment("a", "n0", 2, 1.0, 4.0),
        Segment("a", "n0", 2, 4.0, 6.0),  # while it stops
        Segment("b", "n0", 1, 6.0, 10.0),  # until the end of the run; the last of `a` took no time
        Segment("b", "n1", 3, 6.0, 10.0),
    ]


def test_what_begins_at_the_end_of_the_run_takes_no_time():
    assert list(segments(story_of(ROWS[:6]), 6.0)) == [
        Segment("a", "n0", 2, 1.0, 4.0),
        Segment("a", "n0", 2, 4.0, 6.0),
    ]
