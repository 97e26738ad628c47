"""The zoo: complete sources, the facts of Synergy, sane speeds."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from trainyard.errors import InputError
from trainyard.model.cluster import Cluster, Node
from trainyard.model.profile import Profile
from trainyard.model.speed import Shapes, SpeedModel
from trainyard.model.zoo import ZOO, zoo_profile

TYPES = ("V100", "P100", "K80", "T4", "A100")
CLUSTER = Cluster(
    "zoo",
    tuple(
        Node(f"{gpu}-{i}", gpu, 8, 24, 500, network_gbps=10, intra_gbps=300)
        for gpu in TYPES
        for i in range(4)
    ),
)
MODEL = SpeedModel(CLUSTER)

# Synergy's facts: model, seconds of an iteration, batch, full demand (CPUs, GB), speedup there.
SYNERGY = [
    ("alexnet", 0.600, 512, 12, 125, 2.94),
    ("resnet18", 0.640, 512, 9, 62.5, 2.40),
    ("resnet50", 0.780, 512, 4, 62.5, 1.15),
    ("mobilenet", 0.710, 512, 6, 62.5, 1.55),
    ("shufflenet", 0.615, 512, 12, 125, 2.89),
    ("gnmt", 0.120, 128, 1, 20, 1),
    ("transformer", 0.670, 128, 1, 20, 1),
    ("lstm", 0.011, 20, 1, 20, 1),
    ("m5", 0.600, 512, 6, 187.5, 2.50),
    ("deepspeech2", 0.757, 20, 3, 62.5, 1),
]


def numeric_leaves(value, default, path=""):
    """Paths of all numbers that differ from the default of their field."""
    if is_dataclass(value):
        plain = default if type(default) is type(value) else None
        for f in fields(value):
            known = getattr(plain, f.name) if plain is not None else f.default
            yield from numeric_leaves(getattr(value, f.name), known, f"{path}.{f.name}" if path else f.name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from numeric_leaves(item, None, f"{path}.{key}")
    elif isinstance(value, tuple) and value != default:
        for i, item in enumerate(value):
            yield from numeric_leaves(item, None, f"{path}.{i}")
    elif isinstance(value, int | float) and value != default:
        yield path


def on_one_gpu(gpu, cpus, memory_gb, workers=1):
    counts = np.array([[workers if t == gpu else 0 for t in TYPES]])
    one = np.ones(1)
    return Shapes(
        counts, np.zeros(1, int), np.ones(1, int), 300 * one, cpus * one, memory_gb * one, 500 * one
    )


@pytest.mark.parametrize("name", ZOO)
def test_every_number_has_a_source(name):
    entry = ZOO[name]
    leaves = list(numeric_leaves(entry.profile, Profile()))
    assert leaves
    for path in leaves:
        sourced = [key for key in entry.sources if path == key or path.startswith(f"{key}.")]
        assert sourced, f"{name}: no source for {path}"
    for key, source in entry.sources.items():
        assert any(path == key or path.startswith(f"{key}.") for path in leaves), (
            f"{name}: {key} is no number"
        )
        assert len(source) > 10


def test_the_zoo_is_broad():
    assert len(ZOO) >= 14
    assert {entry.field for entry in ZOO.values()} == {"vision", "language", "speech", "recommendation"}
    assert all(entry.profile.name == name for name, entry in ZOO.items())
    assert all({"V100", "A100"} <= set(entry.profile.compute.per_sample_s) for entry in ZOO.values())


@pytest.mark.parametrize(("name", "iteration_s", "batch", "cpus", "memory_gb", "speedup"), SYNERGY)
def test_synergy_facts(name, iteration_s, batch, cpus, memory_gb, speedup):
    profile = zoo_profile(name)
    assert (profile.batch, profile.scaling) == (batch, "weak")
    share = MODEL.bulk(profile, on_one_gpu("V100", 3, 62.5))[0]
    full = MODEL.bulk(profile, on_one_gpu("V100", cpus, memory_gb))[0]
    assert batch / share == pytest.approx(iteration_s)
    assert full / share == pytest.approx(speedup)


def test_synergy_matrix_points():
    def relative(name, cpus, memory_gb):
        measured = MODEL.bulk(zoo_profile(name), on_one_gpu("V100", cpus, memory_gb))[0]
        return measured / MODEL.bulk(zoo_profile(name), on_one_gpu("V100", 3, 62.5))[0]

    assert relative("alexnet", 12, 62.5) == pytest.approx(2.0)
    assert relative("alexnet", 24, 20.83) == pytest.approx(0.1)
    assert relative("m5", 9, 125) == pytest.approx(2.0)
    assert relative("m5", 5, 250) == pytest.approx(1.4)
    assert relative("deepspeech2", 1, 62.5) == pytest.approx(0.30)
    assert relative("resnet50", 2, 250) == pytest.approx(0.74)
    assert relative("gnmt", 1, 20.83) == 1


@pytest.mark.parametrize("name", ZOO)
def test_speeds_are_sane(name):
    profile = zoo_profile(name)
    for gpu in TYPES:
        column = TYPES.index(gpu)
        workers = np.zeros((5, len(TYPES)), dtype=np.int64)
        workers[:, column] = [1, 2, 4, 8, 32]
        speeds = MODEL.bulk(profile, MODEL.proportional(workers))
        assert np.isfinite(speeds).all()
        assert (speeds > 0).all()
        assert (np.diff(speeds[:4]) > -1e-9 * speeds[:3]).all(), (
            f"{name} on {gpu}: slower with more GPUs in a node"
        )


@pytest.mark.parametrize("name", ZOO)
def test_gpu_types_are_in_their_known_order(name):
    seconds = zoo_profile(name).compute.per_sample_s
    named = [gpu for gpu in ("K80", "P100", "V100", "A100") if gpu in seconds]
    assert [seconds[gpu] for gpu in named] == sorted((seconds[gpu] for gpu in named), reverse=True)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'resnet50'"):
        zoo_profile("resnet-50")
