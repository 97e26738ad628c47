"""A fitted profile tells the speeds of the profile that the samples came from."""

from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainyard.model.profile import Compute, Input, Profile, Sync
from trainyard.profiling.fit import fit_profile
from trainyard.profiling.samples import Sample, Setting, predicted

BATCH = 128
# One GPU type is never short of CPUs, the other always. Every worker has the same batch, so that the samples
# of the former do not tell a fixed time, which all types have, from a time per sample.
ONE_FED = Profile(
    batch=BATCH,
    scaling="weak",
    compute=Compute(0.0, {"V100": 0.0005, "P100": 0.02}),
    sync=Sync("ps", latency_s=0.0),
    input=Input(0.008),
)


@st.composite
def profiles(draw):
    ps = draw(st.booleans())
    per_sample = st.floats(2e-4, 2e-2)
    sync = Sync(
        "ps" if ps else "ring",
        gradient_mb=draw(st.just(0.0) | st.floats(10, 500)),
        latency_s=0.0,
        worker_overhead_s=draw(st.just(0.0) | st.floats(1e-4, 1e-2)),
        server_overhead_s=draw(st.just(0.0) | st.floats(1e-4, 1e-2)) if ps else 0.0,
    )
    return Profile(
        batch=BATCH,
        scaling=draw(st.sampled_from(["strong", "weak"])),
        compute=Compute(
            draw(st.just(0.0) | st.floats(1e-3, 0.1)), {"V100": draw(per_sample), "P100": draw(per_sample)}
        ),
        sync=sync,
        input=draw(st.none() | st.builds(Input, st.floats(1e-4, 5e-2))),
    )


def samples_of(profile, seed, count=80):
    """Make samples of all kinds of allocations, and return them with a profile's speeds."""
    rng = np.random.default_rng(seed)
    setting = Setting(BATCH, profile.scaling)
    ps = profile.sync.kind == "ps"
    samples = []
    for _ in range(count):
        workers = int(rng.choice([1, 2, 3, 4, 8, 16]))
        nodes = int(rng.integers(1, 3)) if workers > 1 else 1
        servers = int(rng.integers(1, 6)) if ps else 0
        cpus = workers * float(rng.choice([1, 2, 3, 6, 12]))
        kind = str(rng.choice(["V100", "P100"]))
        samples.append(Sample(workers, 1.0, servers, cpus, 60.0, kind, nodes))
    return samples, predicted(profile, samples, setting), setting, rng


def refit(samples, speeds, setting):
    measured = [replace(s, samples_per_s=v) for s, v in zip(samples, speeds.tolist(), strict=True)]
    fitted = fit_profile(measured, setting, "again")
    return fitted, predicted(fitted, samples, setting)


@settings(max_examples=25, deadline=None)
@given(profiles(), st.integers(0, 1000))
@example(ONE_FED, 1)
def test_exact_samples_are_told_again(profile, seed):
    samples, true, setting, _ = samples_of(profile, seed)
    fitted, found = refit(samples, true, setting)
    errors = np.abs(found / true - 1)
    assert np.median(errors) < 0.01
    assert np.quantile(errors, 0.95) < 0.05
    assert fitted.fit.samples == len(samples)


@settings(max_examples=25, deadline=None)
@given(profiles(), st.integers(0, 1000))
@example(ONE_FED, 1)
def test_noise_and_outliers_hardly_matter(profile, seed):
    samples, true, setting, rng = samples_of(profile, seed)
    noisy = true * np.exp(rng.normal(0, 0.03, len(true)))
    wrong = rng.permutation(len(true))[: len(true) // 10]
    noisy[wrong] *= rng.choice([0.25, 0.5, 2.0], len(wrong))
    fitted, found = refit(samples, noisy, setting)
    errors = np.abs(found / true - 1)
    assert np.median(errors) < 0.03
    assert np.quantile(errors, 0.9) < 0.1
    assert fitted.fit.outliers >= len(wrong) // 2
