"""All-reduce and parameter servers against the goldens of the specifications."""

import numpy as np
import pytest

from trainyard.model.profile import Sync
from trainyard.model.speed.allreduce import (
    PRESETS,
    RING_FROM_BYTES,
    allreduce_s,
    ceil_log2,
    cost_s,
    floor_log2,
)
from trainyard.model.speed.paramserver import one_way_s


@pytest.mark.parametrize(
    ("algorithm", "workers", "golden"),
    [
        ("ring", 2, 0.102500),
        ("ring", 8, 0.106475),
        ("ring", 9, 0.106933),
        ("halving-doubling", 8, 0.105450),
        ("halving-doubling", 16, 0.105850),
        ("binary-blocks", 9, 0.109400),
    ],
)
def test_capes_goldens(algorithm, workers, golden):
    costs = PRESETS["capes"][algorithm]
    seconds = cost_s(costs, np.array([workers]), 1e6, 1e-4, np.array([1e-9]), 1e-10)
    assert 0.1 + seconds[0] == pytest.approx(golden, abs=5e-7)


@pytest.mark.parametrize(
    ("algorithm", "workers", "by_hand"),
    [
        ("ring", 9, 16e-4 + 16 / 9 * 1e-3 + 8 / 9 * 1e-4),
        ("halving-doubling", 8, 6e-4 + 14 / 8 * 1e-3 + 7 / 8 * 1e-4),
        ("binary-blocks", 9, 9e-4 + 4e-3 + 1.5e-4),
    ],
)
def test_thakur_by_hand(algorithm, workers, by_hand):
    costs = PRESETS["thakur"][algorithm]
    seconds = cost_s(costs, np.array([workers]), 1e6, 1e-4, np.array([1e-9]), 1e-10)
    assert seconds[0] == pytest.approx(by_hand)


def test_log2_is_exact_at_every_power():
    powers = 2 ** np.arange(50)
    assert (floor_log2(powers) == np.arange(50)).all()
    assert (ceil_log2(powers) == np.arange(50)).all()
    assert (floor_log2(powers[2:] - 1) == np.arange(1, 49)).all()
    assert (ceil_log2(powers + 1) == np.arange(1, 51)).all()


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "binary-blocks", "auto"])
def test_one_worker_talks_to_nobody(algorithm):
    sync = Sync(algorithm=algorithm, reduce_s_per_gb=1.0)
    assert allreduce_s(sync, 100.0, np.array([0, 1]), np.full(2, 10.0)).tolist() == [0.0, 0.0]


def test_auto_takes_the_ring_for_large_messages_and_follows_powers_of_two_below():
    workers, gbps = np.array([7, 8, 9]), np.full(3, 10.0)

    def seconds(algorithm, megabytes):
        return allreduce_s(Sync(algorithm=algorithm, cost_preset="capes"), megabytes, workers, gbps).tolist()

    large, small = RING_FROM_BYTES / 1e6, RING_FROM_BYTES / 1e6 - 1
    assert seconds("auto", large) == seconds("ring", large)
    assert seconds("auto", small) == seconds("halving-doubling", small) == seconds("binary-blocks", small)
    assert seconds("auto", small)[1] < seconds("auto", small)[0]


def test_bandwidth_is_in_gigabits_and_gradients_in_megabytes():
    seconds = allreduce_s(Sync(latency_s=0.0), 100.0, np.array([2]), np.array([8.0]))
    assert seconds[0] == pytest.approx(100e6 / 1e9)


def test_parameter_servers_share_their_bandwidth():
    arguments = (300.0, np.array([14, 14]), np.array([2, 0]), np.full(2, 10.0))
    assert one_way_s(Sync(kind="ps"), *arguments) == pytest.approx([2.4 / 2 / (10 / 14), 2.4 / (10 / 14)])
    half = Sync(kind="ps", mode="async", async_share=0.5)
    assert one_way_s(half, *arguments) == pytest.approx(one_way_s(Sync(kind="ps"), *arguments) / 2)
