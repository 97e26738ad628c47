"""What is believed survives a file: of lengths, of past jobs, of speeds."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from purity_cases import random_scene
from trainyard.api import known_models
from trainyard.core.events import JobSubmitted, ProgressReported
from trainyard.core.restore import restore
from trainyard.core.saving import snapshot_record
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.files.snapshot import load_snapshot
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator

POLICIES = ["srtf", "srtf+optimus", "easy", "ftf+tune", "hadar(round_s=30)", "market", "srtf+smd"]


def through_a_file(view, path):
    path.write_text(json.dumps(snapshot_record(view), allow_nan=False))
    return restore(load_snapshot(path, known_models()))


def report(yard, now_s, draw):
    running = [record for record in yard.table.records if record.rate > 0 and record.since < now_s]
    if running and draw.random() < 0.3:
        record = draw.choice(running)
        done = record.done_at(now_s) * draw.choice((1.0, 0.9, 0.5))
        total = record.total * 2 if draw.random() < 0.2 else None
        told = ProgressReported(now_s, record.job_id, done, samples_total=total)
        yard.take_report(record, told)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("tells", [False, True])
def test_a_restored_yard_revises_and_decides_the_same(policy, tells, tmp_path):
    draw, compared = Random(11), 0
    for seed in range(2):
        scene = random_scene(Random(seed))
        rules = replace(scene.rules, unknown_durations=True)
        run = Simulator(scene.cluster, scene.jobs, parse_policy(policy), rules, scene.failures)
        for number in range(60):
            if not run.advance():
                break
            if tells:
                report(run.yard, run.now_s, draw)
            twin = None
            if number % 5 == 4:
                twin, asked = through_a_file(run.yard.snapshot(run.now_s), tmp_path / "s.json")
                validate(twin)
                assert twin.lengths.history.record() == run.yard.lengths.history.record()
                assert twin.corrections.record() == run.yard.corrections.record()
                asked.ask = parse_policy(policy).decide
                twin.decide(run.now_s)
            run.decide()
            if twin is not None:
                assert twin.target == run.yard.target
                for job_id, record in run.yard.records.items():
                    other = twin.records[job_id]
                    assert (other.total, other.remaining) == (record.total, record.remaining)
                    assert other.length.estimate == record.length.estimate
                    assert (other.length.done, other.length.look_s) == (
                        record.length.done,
                        record.length.look_s,
                    )
                compared += 1
    assert compared


def test_a_job_whose_length_nobody_kept_begins_with_a_belief(tmp_path):
    yard = Yard(uniform_cluster(1, 4), parse_policy("fifo").decide)
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 2)))
    kept = snapshot_record(yard.snapshot(0.0))
    del kept["jobs"][0]["record"]["length"]
    (tmp_path / "s.json").write_text(json.dumps(kept, allow_nan=False))
    twin, _ = restore(load_snapshot(tmp_path / "s.json", known_models()))
    before, after = yard.records["a"], twin.records["a"]
    assert after.length == before.length
    assert (after.total, after.remaining) == (before.total, before.remaining)
