"""The memory axis that is computed instead of measured."""

from __future__ import annotations

import numpy as np
import pytest

from cases import case
from trainyard.model.profile import Input
from trainyard.model.speed.inputs import input_storage_s
from trainyard.profiling.memory import Dataset, default_memory_gb, memory_rows


def test_every_row_of_synergys_profiler():
    rows = case("synergy/memory_model")["rows"]
    assert len(rows) == 432
    for dataset_gb, storage_mbps, memory_gbps, full_s, percent, epoch_s, needed_mbps in rows:
        dataset = Dataset(dataset_gb, storage_mbps, memory_gbps, mb_per_gb=1024)
        assert dataset.epoch_s(full_s, percent / 100) == epoch_s
        assert dataset.storage_mbps_needed(full_s, percent / 100) == needed_mbps


def test_rows_agree_with_the_speed_model():
    speeds, one = {1.0: 300.0, 2.0: 600.0}, np.ones(1)
    for cpus, gb, speed in memory_rows(speeds, [0.0, 35.0, 70.0, 140.0, 200.0], Dataset(140, 60), 110.0):
        storage_s = input_storage_s(Input(0.0, 110.0, 140.0), one, gb * one, 60 * one)[0]
        assert speed == pytest.approx(1 / max(storage_s, 1 / speeds[cpus]), rel=1e-5)


def test_without_a_dataset_memory_is_flat():
    assert default_memory_gb(None) == [1.0]
    assert memory_rows({1.0: 5.0, 2.0: 7.0}, [1.0, 9.0], None, 0.0) == (
        (1.0, 1.0, 5.0),
        (1.0, 9.0, 5.0),
        (2.0, 1.0, 7.0),
        (2.0, 9.0, 7.0),
    )


def test_all_in_memory_needs_no_storage():
    dataset = Dataset(100, 50)
    assert default_memory_gb(dataset)[:2] == [0.0, 10.0]
    assert default_memory_gb(dataset)[-1] == 100.0
    assert dataset.fetch_s(1.0) == 0
    assert dataset.storage_mbps_needed(10.0, 1.0) == 0
    assert dataset.epoch_s(10.0, 0.0) == 2000
