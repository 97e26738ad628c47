"""From a teacher's sizes to the single actions that lead there."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from learn_cases import CLUSTER, on_testbed, ring
from trainyard.learn.episode import Scenario
from trainyard.learn.lessons import lessons, toward, watch
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import STOP, Slots
from trainyard.policy.stages import Shapes

TEACHERS = ["drf", "optimus(hysteresis=false)", "lookahead", "doubling"]


@pytest.mark.parametrize("scenario", [on_testbed, ring])
@pytest.mark.parametrize("teacher", TEACHERS)
def test_the_steps_lead_where_the_teacher_is(scenario, teacher):
    slots, reached = Slots(1, Features()), 0
    for moment in watch(scenario(2), parse_policy(teacher)):
        slots.open(0, moment.snapshot, moment.ranked, moment.slot_s)
        start = slots.shapes(0)
        while True:
            mask = slots.observe().mask
            (action,) = toward(slots, [moment.shapes], mask)
            assert mask[0, action]
            if action == STOP:
                break
            slots.act(np.array([0]), np.array([action]))
            reached += 1
        if not moment.shapes.gpus.all():
            continue  # the teacher lets somebody wait who starts with something here, so there is less room
        workers, servers = slots.shapes(0)[:2]
        np.testing.assert_array_equal(workers, np.maximum(moment.shapes.gpus, start.gpus))
        apart = slots.kinds.apart[slots.jobs.kind[0, : workers.size]]
        np.testing.assert_array_equal(servers[apart], np.maximum(moment.shapes.servers, 1)[apart])
    assert reached > 20


def test_what_saves_most_for_its_share_comes_first():
    named = {job.model: job for job in on_testbed(0).jobs}
    jobs = [Job(**{**fields(named[name]), "arrival_s": 0.0}) for name in ("resnet-50", "wlm")]
    alone = Scenario(CLUSTER, jobs, 300.0)
    moment = next(watch(alone, parse_policy("drf")))
    slots, path = Slots(1, Features()), []
    slots.open(0, moment.snapshot, moment.ranked, 300.0)
    aim = Shapes(np.array([2, 1]), np.array([3, 3]))
    while (action := toward(slots, [aim], slots.observe().mask)[0]) != STOP:
        slots.act(np.array([0]), np.array([action]))
        path.append(tuple(tuple(map(int, size)) for size in zip(*slots.shapes(0)[:2], strict=True)))
    # resnet-50 has work for more than a slot; by servers it runs at 0.24, 0.44, 0.72 of its peak, and with a
    # second worker at 0.66. wlm, at 0.33, 0.47, 0.62, has work for 0.25 slots at its peak: 0.24, 0.13 saved.
    assert path == [
        ((1, 1), (1, 2)),
        ((1, 2), (1, 2)),
        ((1, 3), (1, 2)),
        ((1, 3), (1, 3)),
        ((2, 3), (1, 3)),
    ]


def fields(job):
    names = ("job_id", "gpus", "samples", "model", "profile", "min_gpus", "max_gpus")
    return {name: getattr(job, name) for name in names}


def test_lessons_are_decisions_with_a_choice():
    teacher = parse_policy("lookahead")
    moments = chain.from_iterable(watch(on_testbed(i), teacher) for i in range(3))
    count = stops = 0
    for lesson in lessons(moments, batch=4):
        rows = np.arange(lesson.actions.size)
        assert lesson.mask[rows, lesson.actions].all()
        assert lesson.mask[:, 1:].any(axis=1).all()
        assert lesson.jobs.shape[:2] == (rows.size, (lesson.mask.shape[1] - 1) // ACTIONS)
        count, stops = count + rows.size, stops + int((lesson.actions == STOP).sum())
    again = sum(
        lesson.actions.size
        for lesson in lessons(chain.from_iterable(watch(on_testbed(i), teacher) for i in range(3)), batch=1)
    )
    assert count == again > 300
    assert stops > 0
