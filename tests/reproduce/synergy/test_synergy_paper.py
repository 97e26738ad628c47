"""The reproduction of Synergy: its workload, its capacity, a tiny experiment, and the command."""

from __future__ import annotations

import csv
import json
import sys
from itertools import islice

import pytest

from cases import case
from trainyard.cli.main import run
from trainyard.model.speed import SpeedModel
from trainyard.reproduce.findings import Findings, Heading, Table, write_findings
from trainyard.reproduce.pool import in_parallel
from trainyard.reproduce.synergy import gains, opt
from trainyard.reproduce.synergy.capacity import capacity, mean_hours
from trainyard.reproduce.synergy.decisions import decision_table
from trainyard.reproduce.synergy.figures import draw
from trainyard.reproduce.synergy.runs import Setting, Window, carry_out, gain
from trainyard.reproduce.synergy.workload import SPLIT, Workload, durations, synergy_cluster, synergy_jobs

NAMES = {"res18": "resnet18", "res50": "resnet50", "deepspeech": "deepspeech2"}
TINY = Window(20, 60, 10.0, 10.0)


def tell_nobody(done):
    pass


def test_the_first_jobs_are_those_of_the_public_simulator():
    known = case("synergy/workload_head")
    speed = SpeedModel(synergy_cluster(16))
    for load, rows in known["jobs"].items():
        jobs = synergy_jobs(Workload(len(rows), float(load)))
        assert [[job.arrival_s, job.model] for job in jobs] == [[at, NAMES.get(m, m)] for at, m, _ in rows]
        iterations = [job.duration_s * speed.reference_rate(job) / job.profile.batch for job in jobs]
        assert [int(count + 1e-6) for count in iterations] == [count for _, _, count in rows]
    for small, name in ((False, "durations_s"), (True, "small_trace_durations_s")):
        assert list(islice(durations(42, small), len(known[name]))) == known[name]


def test_mixes_of_models_and_gpus():
    jobs = synergy_jobs(Workload(2000, 9.0, (50, 0, 50), multi_gpu=True))
    models = [job.model for job in jobs]
    assert models[:5] == ["alexnet", "m5", "resnet18", "deepspeech2", "resnet50"]
    assert "gnmt" not in models
    assert sum(job.gpus for job in jobs) / 2000 == pytest.approx(1.9, rel=0.1)
    assert {job.gpus for job in synergy_jobs(Workload(50, None))} == {1}


def test_capacity_is_between_the_bounds_that_can_be_told_by_hand():
    plain, tuned = capacity(SPLIT, 3.0)
    assert plain == pytest.approx(128 / mean_hours())
    assert plain == pytest.approx(7.64, rel=2e-3)
    # With 20-70-10 there is enough for everybody: 1 / full speed, averaged over the models.
    images, speech = (1 / 2.94 + 1 / 2.4 + 1 / 1.15 + 1 / 1.55 + 1 / 2.89) / 5, (1 / 2.5 + 1) / 2
    assert tuned == pytest.approx(plain / (0.2 * images + 0.7 + 0.1 * speech))
    assert capacity((50, 0, 50), 3.0).tuned < 1.1 * plain


@pytest.fixture(scope="module")
def tiny():
    scale = gains.QUICK._replace(
        window=TINY, loads=(10.0,), split_loads=(("SRTF", (5.0, 10.0, 11.0)),), starts=(0,), small_orders=()
    )
    opt_scale = opt.QUICK._replace(jobs=25, orders=("SRTF",))
    found = in_parallel(carry_out, [*gains.runs(scale), *opt.runs(opt_scale)], tell_nobody)
    tables = [*gains.tables(scale, found), *opt.tables(opt_scale, found), decision_table(((16, SPLIT),))]
    return scale, found, tables


def test_tune_gains_and_comes_near_opt(tiny):
    scale, found, tables = tiny
    for setting in gains.pairs(scale):
        assert gain(setting, found) > 0.999, setting
    assert opt.summary([t for t in tables if t.name in ("opt", "deployment")])[2] < 1.05


def test_theirs_stand_beside_ours(tiny):
    scale, found, made = tiny
    tables = {table.name: table for table in made}
    rows = {(row[0], row[1]): row for row in tables["load"].rows}
    assert rows["FIFO", 10.0][-3:] == [126.2, 62.45, "2.02x"]
    assert gains.summary(scale, found)[0][-1] == "3.4x (abstract)"


def test_results_are_written(tiny, tmp_path):
    tables = tiny[2]
    pictures = draw(tables)
    text = write_findings(tmp_path, Findings("paper", tables, pictures)).read_text()
    for table in tables:
        assert f"## {table.title}" in text
        lines = (tmp_path / f"{table.name}.csv").read_text().splitlines()
        assert len(list(csv.reader(lines))) == len(table.rows) + 1
    assert set(json.loads((tmp_path / "results.json").read_text())) == {table.name for table in tables}
    assert all((tmp_path / name).read_bytes() == picture for name, picture in pictures.items())
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())


def test_what_is_not_known_is_a_dash():
    table = Table("t", "T", [Heading("a"), Heading("b", "{:.1f}x")], [["x", None], ["y", 1.25]])
    assert table.texts() == [["x", "-"], ["y", "1.2x"]]


def test_runs_are_made_once():
    setting = Setting("FIFO", 5.0, window=TINY, nodes=2)
    done = []
    answers = in_parallel(carry_out, [setting.run(""), setting.run("")], done.append)
    assert list(answers) == [setting.run("")]
    assert done == [1]


def test_an_unknown_paper_is_refused(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["trainyard", "reproduce", "sinergy"])
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == ("trainyard: error: unknown paper 'sinergy'; did you mean 'synergy'?\n")
    assert list(tmp_path.iterdir()) == []
