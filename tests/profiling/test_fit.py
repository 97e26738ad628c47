"""Fitting: from samples to a profile, as a function and as a command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from trainyard.cli.main import run
from trainyard.errors import InputError
from trainyard.files.profiles import load_profiles, parse_profile, profile_record
from trainyard.model.profile import Compute, Fit, Input, Profile, Sync
from trainyard.profiling.fit import doubts, fit_profile, goodness
from trainyard.profiling.samples import COLUMNS, Sample, Setting, load_samples, predicted

HEADER = "workers,cpus,memory_gb,samples_per_s"


def told(profile, samples, setting=None):
    """Samples with the speeds that a profile has."""
    speeds = predicted(profile, samples, setting or Setting(profile.batch, profile.scaling)).tolist()
    return [
        Sample(s.workers, speed, s.servers, s.cpus, s.memory_gb, s.gpu_type, s.nodes)
        for s, speed in zip(samples, speeds, strict=True)
    ]


def by_cpus(*speeds):
    return [Sample(1, speed, cpus=float(cpus)) for cpus, speed in enumerate(speeds, 1)]


def test_one_sample_is_a_time_per_sample():
    fitted = fit_profile([Sample(2, 100.0)], name="x")
    assert fitted.compute == Compute(per_sample_s={"GPU": 0.02})
    assert (fitted.name, fitted.sync, fitted.input) == ("x", None, None)
    assert fitted.fit == Fit(1, 0, 1.0, 0.0, 0.0)


def test_cpu_bound_samples_give_the_cpu_time():
    fitted = fit_profile(by_cpus(100, 200, 300, 350, 350))
    assert fitted.input == Input(0.01)
    assert fitted.compute.per_sample_s == pytest.approx({"GPU": 1 / 350}, rel=1e-5)


def test_what_was_never_seen_is_no_faster_than_what_was():
    fitted = fit_profile(by_cpus(100, 200, 300))
    assert fitted.input == Input(0.01)
    assert predicted(fitted, [Sample(1, 1.0, cpus=50)], Setting())[0] == pytest.approx(300, rel=1e-5)


def test_flat_speeds_do_not_make_up_cpu_time():
    assert fit_profile(by_cpus(100, 102, 99, 101)).input is None
    assert fit_profile([Sample(w, 10.0 * w, cpus=3.0 * w) for w in (1, 2, 4, 8)]).input is None


def test_terms_are_told_apart():
    samples = [
        Sample(w, 1.0, cpus=cpus * w, gpu_type=kind, nodes=nodes)
        for w in (1, 2, 4, 8)
        for cpus in (0.5, 4)
        for kind in ("V100", "P100")
        for nodes in (1, 2)
        if w >= nodes
    ]
    true = Profile(
        batch=256,
        compute=Compute(0.02, {"V100": 0.001, "P100": 0.003}),
        sync=Sync("ring", gradient_mb=100, latency_s=0.0),
        input=Input(0.002),
    )
    fitted = fit_profile(told(true, samples), Setting(256))
    assert fitted.compute.per_sample_s == pytest.approx({"V100": 0.001, "P100": 0.003}, rel=1e-3)
    assert fitted.compute.fixed_s == pytest.approx(0.02, rel=1e-2)
    assert fitted.sync.gradient_mb == pytest.approx(100, rel=1e-2)
    assert fitted.input.cpu_s_per_sample == pytest.approx(0.002, rel=1e-3)
    assert fitted.fit.r2 > 0.9999


def test_parameter_servers_are_those_of_optimus():
    samples = [Sample(w, 1.0, servers=p) for w in (1, 2, 3, 5, 8) for p in (1, 2, 4, 6)]
    sync = Sync("ps", gradient_mb=500, latency_s=0.0, worker_overhead_s=0.005, server_overhead_s=0.01)
    true = Profile(batch=64, compute=Compute(0.1, {"GPU": 0.02}), sync=sync)
    fitted = fit_profile(told(true, samples), Setting(64))
    assert fitted.sync.kind == "ps"
    assert fitted.fit.worst_error < 0.02


def test_memory_gives_the_size_of_a_sample():
    samples = [Sample(1, 1.0, cpus=4.0, memory_gb=gb) for gb in (0, 20, 40, 60, 80, 100)]
    true = Profile(compute=Compute(0.0, {"GPU": 0.001}), input=Input(0.0, 200.0, 100.0))
    setting = Setting(dataset_gb=100, storage_mbps=50)
    fitted = fit_profile(told(true, samples, setting), setting)
    assert fitted.input == Input(0.0, pytest.approx(200, rel=1e-4), 100)


def test_weak_scaling():
    samples = [Sample(w, 1.0, nodes=n) for w in (1, 2, 4, 8, 16) for n in (1, 2) if w >= n]
    true = Profile(
        batch=32, scaling="weak", compute=Compute(0, {"GPU": 0.01}), sync=Sync(gradient_mb=200, latency_s=0)
    )
    fitted = fit_profile(told(true, samples), Setting(32, "weak"))
    assert fitted.scaling == "weak"
    assert fitted.fit.worst_error < 0.01


def test_outliers_are_counted_and_do_not_matter():
    samples = by_cpus(*[100.0] * 3, *[400.0] * 17)
    fitted = fit_profile([*samples, Sample(1, 40.0, cpus=9), Sample(1, 900.0, cpus=10)])
    assert (fitted.fit.samples, fitted.fit.outliers) == (22, 4)
    assert predicted(fitted, [Sample(1, 1.0, cpus=10)], Setting())[0] == pytest.approx(400, rel=0.01)


@pytest.mark.parametrize("factor", [3.0, 1 / 3])
@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("seed", [0, 2])
def test_samples_that_are_far_off_do_not_hide_the_cpu_time(factor, noise, seed):
    rng = np.random.default_rng(seed)
    samples = [Sample(w, 1.0, cpus=w * cpus) for w in (1, 2, 4) for cpus in (1, 2, 3, 4, 6, 8, 12)]
    speeds = np.array([min(350.0 * s.workers, 100.0 * s.cpus) for s in samples])
    speeds *= np.exp(rng.normal(0, noise, len(speeds)))
    speeds[rng.permutation(len(speeds))[:3]] *= factor
    measured = [Sample(s.workers, v, cpus=s.cpus) for s, v in zip(samples, speeds.tolist(), strict=True)]
    fitted = fit_profile(measured)
    assert fitted.input.cpu_s_per_sample == pytest.approx(1 / 100, rel=0.08)
    assert fitted.compute.per_sample_s["GPU"] == pytest.approx(1 / 350, rel=0.08)
    assert fitted.fit.outliers == 3
    assert doubts(fitted, measured, Setting()) == []


def test_the_first_samples_too_fast():
    speeds = {1: 300, 2: 600, 3: 300, 4: 350, 6: 350, 8: 350, 12: 350}
    more = {2: 200, 4: 400, 6: 600, 8: 700, 12: 700, 16: 700, 24: 700}
    samples = [Sample(1, float(v), cpus=float(c)) for c, v in speeds.items()]
    fitted = fit_profile([*samples, *(Sample(2, float(v), cpus=float(c)) for c, v in more.items())])
    assert fitted.input == Input(0.01)
    assert fitted.fit.outliers == 2
    assert 0 < fitted.fit.r2 < 0.9  # which counts them


@pytest.mark.parametrize(
    ("speeds", "speed", "said"),
    [
        ((100, 102, 98, 900), 100, "fits badly: 1 of 4 samples are far off; check them"),
        ((100, 900, 10), 100, "fits badly: half of the samples are off by over 88%; check them"),
        ((100,), 100, "too few to judge (samples: 1, fitted numbers: 1); measure at least 2"),
    ],
)
def test_contradictions_give_the_median_and_are_said(speeds, speed, said):
    samples = [Sample(1, float(one)) for one in speeds]
    fitted = fit_profile(samples)
    assert 1 / fitted.compute.per_sample_s["GPU"] == pytest.approx(speed, rel=0.1)
    assert doubts(fitted, samples, Setting()) == [said]


def test_memory_that_is_not_used_is_said():
    samples = [Sample(1, 100.0, memory_gb=gb) for gb in (10.0, 20.0, 30.0)]
    said = "memory_gb varies but is not used: no dataset size is given; give --dataset-gb"
    assert doubts(fit_profile(samples), samples, Setting()) == [said]
    assert doubts(fit_profile(samples), samples, Setting(dataset_gb=5.0)) == []


@pytest.mark.parametrize("speed", [1e-300, 1e300, float("nan")])
def test_extreme_samples_are_refused(speed):
    with pytest.raises(
        InputError, match=r"sample 2, field samples_per_s: .* it must be from 1e-06 to 1e\+12"
    ):
        fit_profile([Sample(1, 1.0), Sample(1, speed)])


def test_goodness():
    found = goodness(np.array([100.0, 110.0, 90.0]), np.array([100.0, 100.0, 100.0]))
    assert (found.median_error, found.worst_error, found.r2) == (0.1, 0.1, 0.0)
    assert goodness(np.array([2.0, 3.0]), np.array([2.0, 3.0])).r2 == 1.0


def test_goodness_survives_reading_and_writing():
    profile = Profile("x", fit=Fit(9, 0, -0.5, 0.01, 0.2))
    assert parse_profile(profile_record(profile), "test", name="x") == profile
    with pytest.raises(
        InputError, match=r"field fit\.r2: 1\.5 is too large; it must be a number of at most 1"
    ):
        parse_profile(
            {"fit": {"samples": 1, "outliers": 0, "r2": 1.5, "median_error": 0, "worst_error": 0}}, "t"
        )


def test_no_samples():
    with pytest.raises(InputError, match="there are no samples; give at least one"):
        fit_profile([])


@pytest.fixture
def command(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, args)])
        run()
        return capfd.readouterr()

    return call


def write(text):
    Path("s.csv").write_text(text)


def test_the_command(command):
    rows = [f"1,{cpus},60,{100 * min(cpus, 4)}" for cpus in range(1, 9)]
    write("\n".join([HEADER, *rows]))
    out, err = command("fit", "s.csv", "--out", "p.yaml", "--batch", 8, "--json")
    assert err == ""
    found = json.loads(out)
    assert found["name"] == "s"
    assert found["profile"]["batch"] == 8
    assert found["profile"]["fit"] == {
        "samples": 8, "outliers": 0, "r2": 1.0, "median_error": 0.0, "worst_error": pytest.approx(0, abs=1e-5)
    }  # fmt: skip
    assert load_profiles("p.yaml")["s"].input.cpu_s_per_sample == pytest.approx(0.01)
    out, _ = command("fit", "s.csv", "--name", "mine", "--out", "p.yaml")
    assert "input.cpu_s_per_sample" in out
    assert out.endswith("written to p.yaml\n")
    assert list(load_profiles("p.yaml")) == ["s", "mine"]


def test_doubts_are_on_stderr(command):
    write("workers,samples_per_s\n1,100\n1,900\n1,10\n")
    out, err = command("fit", "s.csv", "--json")
    assert json.loads(out)["profile"]["fit"]["samples"] == 3
    assert err.startswith("trainyard: warning: fits badly: ")
    assert err.count("\n") == 1


def test_every_column_is_read(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(f"{','.join(COLUMNS)},\n2,1,4.5,60,V100,1,99.5,\n1,,,,,,10,\n")
    assert load_samples(path) == [Sample(2, 99.5, 1, 4.5, 60.0, "V100", 1), Sample(1, 10.0)]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("workers\n1\n", [], "s.csv, line 1, field samples_per_s: column 'samples_per_s' is missing"),
        (f"{HEADER}\n", [], "s.csv: there are no samples; it must have a row for each measured speed"),
        (f"{HEADER}\n1,2,3,0\n", [], "s.csv, line 2, field samples_per_s: 0 is too small"),
        (f"{HEADER}\n1.5,2,3,4\n", [], "s.csv, line 2, field workers: 1.5 is not a whole number"),
        (
            f"{HEADER}\n1,0,3,4\n",
            [],
            "s.csv, line 2, field cpus: 0 is too small; it must be a number above 0",
        ),
        (f"{HEADER}\n1,2,3,4\n1,2,3,1e300\n", [], "s.csv, line 3, field samples_per_s: 1e300 is too large"),
        (
            f"{HEADER}\n1,1e-300,3,4\n",
            [],
            "s.csv, line 2, field cpus: 1e-300 is too small; it must be a number",
        ),
        (f"{HEADER},nodes\n2,2,3,4,4\n", [], "s.csv, line 2, field nodes: 4 nodes for 2 workers; it must be"),
        (f"{HEADER},gpuz\n1,2,3,4,5\n", [], "s.csv, line 1, field gpuz: unknown column 'gpuz'; "),
        (f"{HEADER}\n1,2,3,4\n", ["--name", ""], "--name is empty; give a name such as resnet"),
        (f"{HEADER}\n1,2,3,4\n", ["--batch", "0"], "--batch 0: give a whole number from 1"),
        (f"{HEADER}\n1,2,3,4\n", ["--name", "a\nb"], "p.yaml, field a b: the name"),
        (f"{HEADER}\n1,2,3,4\n", ["--network-gbps", "0"], "--network-gbps 0: give a number above 0"),
    ],
)
def test_wrong_samples(command, capfd, text, options, said):
    write(text)
    with pytest.raises(SystemExit) as caught:
        command("fit", "s.csv", "--out", "p.yaml", *options)
    out, err = capfd.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert err.startswith(f"trainyard: error: {said}")
    assert not Path("p.yaml").exists()
