"""Generated traces have the sizes, run times and bursts of the clusters they imitate."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from trainyard.cli.study.trace import app
from trainyard.errors import InputError
from trainyard.files.jobs import load_jobs, write_jobs
from trainyard.model.zoo import ZOO
from trainyard.trace.arrivals import Batches
from trainyard.trace.generate import generate, parse_gpu_mix, parse_shares, poisson, with_models
from trainyard.trace.plots import plot_stats
from trainyard.trace.presets import preset, preset_names, recommended_cluster
from trainyard.trace.stats import trace_stats
from trainyard.trace.workload import couple

JOBS = 60_000
NAMES = (
    "philly", "helios-venus", "helios-earth", "helios-saturn", "helios-uranus", "pai", "lingjun",
    "acme-seren", "acme-kalos",
)  # fmt: skip
PUBLISHED_LOAD = {
    "helios-earth": 723.5, "helios-saturn": 1748.9, "helios-uranus": 1680.0, "acme-seren": 1353.1,
    "acme-kalos": 582.7,
}  # fmt: skip


def ks(a, b):
    grid = np.sort(np.concatenate([a, b]))
    a, b = (np.searchsorted(np.sort(x), grid, side="right") / len(x) for x in (a, b))
    return np.abs(a - b).max()


def durations(jobs):
    return np.array([job.duration_s for job in jobs])


def test_all_presets_are_there():
    assert preset_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_run_times_are_those_of_the_cluster(name):
    expected, jobs = preset(name).expected, generate(name, JOBS, 1)
    times = durations(jobs)
    assert np.median(times) == pytest.approx(expected["median_s"], rel=0.06)
    assert np.percentile(times, 95) == pytest.approx(expected["p95_s"], rel=0.12)
    assert np.mean([job.gpus for job in jobs]) == pytest.approx(expected["mean_gpus"], rel=0.04)
    assert times.min() >= 1
    assert [job.arrival_s for job in jobs] == sorted(job.arrival_s for job in jobs)


@pytest.mark.parametrize("name", ["helios-earth", "helios-saturn", "helios-uranus"])
def test_run_times_follow_the_published_table(name):
    workload = preset(name).workload
    times = durations(generate(name, JOBS, 2))
    published = workload.cdf / workload.cdf[-1]
    ours = [(times <= 2.0**i).mean() for i in range(len(published))]
    assert np.abs(ours - published)[1:].max() < 0.02


@pytest.mark.parametrize("name", ["philly", "helios-venus", "pai"])
def test_run_times_follow_the_mixture_of_their_class(name):
    jobs = generate(name, JOBS, 3)
    rng = np.random.default_rng(0)
    classes = preset(name).workload.classes
    for least, most in zip(sorted(classes), [*sorted(classes)[1:], 10**6], strict=True):
        mine = np.array([job.duration_s for job in jobs if least <= job.gpus < most])
        reference = np.maximum(1, np.rint(classes[least].draw(20_000, rng)))
        assert ks(mine, reference) < 0.01 + 1.63 * np.sqrt(1 / len(mine) + 1 / 20_000)


@pytest.mark.parametrize(("name", "load"), PUBLISHED_LOAD.items())
def test_gpu_time_per_job_is_the_published_one(name, load):
    facts = preset(name)
    jobs = facts.workload.draw(1_000_000, np.random.default_rng(4))
    per_job = (jobs.gpus * jobs.duration_s).mean()
    assert per_job * facts.arrivals.hourly.mean() / 3600 == pytest.approx(load, rel=0.2)


@pytest.mark.parametrize(
    ("name", "jobs"), [("philly", 110_000), ("helios-venus", 120_000), ("lingjun", 2_498)]
)
def test_arrivals_are_as_bursty_as_the_calibration_says(name, jobs):
    expected = preset(name).expected
    found = [trace_stats(generate(name, jobs, seed), 0.0).arrivals for seed in range(5)]
    assert np.median([a.gap_cv for a in found]) == pytest.approx(expected["gap_cv"], rel=0.2)
    for window, tolerance in (("10min", 0.2), ("1h", 0.2), ("24h", 0.35)):
        dispersion = np.median([a.dispersion[window] for a in found])
        assert dispersion == pytest.approx(expected[f"idc_{window}"], rel=tolerance)
        assert dispersion > 2  # a Poisson process has 1


def test_the_day_has_its_hours_and_the_week_its_end():
    found = trace_stats(generate("helios-venus", 120_000, 5), 0.0).arrivals
    assert found.peak_to_trough == pytest.approx(8.44, rel=0.15)
    assert found.weekend_to_weekday == pytest.approx(0.625, rel=0.15)
    assert found.rate_per_h == pytest.approx(28.4, rel=0.15)


def test_poisson_is_plain():
    found = trace_stats(poisson(50_000, 6, rate_per_h=30, gpu_mix={"1": 1, "4": 3}, duration_s=100))
    assert found.arrivals.gap_cv == pytest.approx(1, abs=0.02)
    assert found.arrivals.dispersion["1h"] == pytest.approx(1, abs=0.1)
    assert found.arrivals.rate_per_h == pytest.approx(30, rel=0.02)
    assert found.mean_gpus == pytest.approx(3.25, rel=0.01)
    assert found.mean_s == pytest.approx(100, rel=0.02)
    assert found.load_gpus == pytest.approx(30 / 3600 * 325, rel=0.03)


def test_labels_have_their_shares():
    philly, kalos = generate("philly", 20_000, 7), generate("acme-kalos", 20_000, 7)
    assert np.mean([job.tenant == "6214e9" for job in philly]) == pytest.approx(0.501, abs=0.02)
    assert np.mean([job.status == "failed" for job in philly]) == pytest.approx(0.306, abs=0.02)
    pretrain = [job.gpus for job in kalos if job.tenant == "Pretrain"]
    assert len(pretrain) / 20_000 == pytest.approx(0.032, abs=0.005)
    assert np.median(pretrain) == 512


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_bytes(tmp_path, name):
    for copy, seed in (("a", 8), ("b", 8), ("c", 9)):
        write_jobs(tmp_path / f"{copy}.csv.gz", generate(name, 500, seed))
    a, b, c = ((tmp_path / f"{copy}.csv.gz").read_bytes() for copy in "abc")
    assert a == b != c
    assert len(load_jobs(tmp_path / "a.csv.gz", {})) == 500


def test_a_longer_trace_begins_like_a_shorter_one():
    short, long = generate("philly", 1_000, 10), generate("philly", 3_000, 10)
    assert [job.arrival_s for job in long[:1000]] == [job.arrival_s for job in short]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(NAMES), st.integers(1, 300), st.integers(0, 2**32))
def test_any_number_of_jobs_can_be_made_and_measured(name, jobs, seed):
    made = generate(name, jobs, seed)
    assert len({job.job_id for job in made}) == len(made) == jobs
    assert all(job.gpus >= 1 and job.duration_s >= 1 and job.arrival_s >= 0 for job in made)
    found = trace_stats(made)
    assert sum(c.job_share for c in found.classes) == pytest.approx(1)
    assert found.suggested_gpus >= found.max_gpus


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.floats(-0.9, 0.9), st.integers(1, 200))
def test_coupling_moves_run_times_but_keeps_them(seed, coupling, n):
    rng = np.random.default_rng(seed)
    gpus, times = rng.integers(1, 9, n), rng.random(n)
    assert sorted(couple(gpus, times, coupling, rng)) == sorted(times)


def test_mean_size_of_batches_is_what_is_drawn():
    batches = Batches(np.array([0.7, 0.2]), 10.5, 1.4, 600, 2.0)
    drawn = batches.draw(400_000, np.random.default_rng(0))
    assert drawn.max() <= 600
    assert drawn.mean() == pytest.approx(batches.mean(), rel=0.03)


def test_models_make_jobs_elastic():
    plain = poisson(1_000, 11)
    jobs = with_models(plain, {"resnet50": 3, "lstm": 1}, 11)
    assert np.mean([job.model == "lstm" for job in jobs]) == pytest.approx(0.25, abs=0.05)
    assert all(job.min_gpus == 1 and job.max_gpus == 4 * job.gpus for job in jobs)
    assert jobs[0].profile is ZOO[jobs[0].model].profile
    assert [job.duration_s for job in jobs] == [job.duration_s for job in plain]


def test_clusters_add_up():
    for name in NAMES:
        facts = recommended_cluster(name)
        assert sum(nodes for nodes, _ in facts.shapes) == facts.nodes
        assert sum(nodes * gpus for nodes, gpus in facts.shapes) == facts.gpus


def test_plots_are_drawn(tmp_path):
    for number, jobs in enumerate((generate("philly", 300, 0), poisson(1, 0))):
        plot_stats(jobs, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


def test_the_commands(tmp_path):
    jobs, twice, png = tmp_path / "jobs.csv", tmp_path / "twice.jsonl.gz", tmp_path / "jobs.png"
    run = CliRunner().invoke
    made = run(app, ["generate", "--preset", "lingjun", "--jobs", "300", "--seed", "1", str(jobs)])
    assert (made.exit_code, made.stdout) == (0, "")
    assert "6,776 GPUs (847 x 8)" in made.stderr
    assert run(app, ["convert", str(jobs), str(twice)]).exit_code == 0
    assert load_jobs(twice, {}) == load_jobs(jobs, {}) == generate("lingjun", 300, 1)
    said = run(app, ["stats", str(twice), "--json", "--plot", str(png)])
    assert json.loads(said.stdout)["jobs"] == 300
    assert png.is_file()
    assert "GPUs for a load of 0.9" in run(app, ["stats", str(jobs)]).stdout


def test_options_of_the_plain_generator(tmp_path):
    plain = [
        "generate",
        "--preset",
        "poisson",
        "--jobs",
        "50",
        "--gpus",
        "4:1",
        "--rate-per-h",
        "60",
        "--models",
    ]
    assert CliRunner().invoke(app, [*plain, "resnet50:1", str(tmp_path / "p.csv")]).exit_code == 0
    jobs = load_jobs(tmp_path / "p.csv", {n: e.profile for n, e in ZOO.items()})
    assert {(job.gpus, job.model, job.max_gpus) for job in jobs} == {(4, "resnet50", 16)}
    wrong = CliRunner().invoke(
        app, ["generate", "--preset", "philly", "--jobs", "5", "--gpus", "1:1", str(tmp_path / "x.csv")]
    )
    assert isinstance(wrong.exception, InputError)
    assert "--gpus is for --preset poisson" in str(wrong.exception)


def test_mixes_are_read():
    assert parse_gpu_mix("1:0.7, 8:0.3", "--gpus") == {"1": 0.7, "8": 0.3}
    assert parse_shares("resnet50:2,lstm:1", "--models", "lstm:1") == {"resnet50": 2, "lstm": 1}


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: generate("helios-mars", 10, 0), "did you mean"),
        (lambda: generate("philly", 0, 0), "at least 1"),
        (lambda: generate("philly", 10, -1), "seed"),
        (lambda: poisson(10, 0, rate_per_h=0), "rate-per-h"),
        (lambda: poisson(10, 0, duration_s=float("nan")), "duration-s"),
        (lambda: parse_gpu_mix("0:1", "--gpus"), "number of GPUs"),
        (lambda: parse_gpu_mix("1", "--gpus"), "name:share"),
        (lambda: parse_shares("a:-1", "--models", "lstm:1"), "as in lstm:1"),
        (lambda: parse_shares("a:0", "--models", "lstm:1"), "no share above 0"),
        (lambda: with_models(poisson(2, 0), {"resnet51": 1}, 0), "did you mean"),
        (lambda: trace_stats([]), "no jobs"),
    ],
)
def test_wrong_wishes_are_explained(make, what):
    with pytest.raises(InputError, match=what):
        make()
