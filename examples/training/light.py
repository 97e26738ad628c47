"""Training that waits for its device: the data are in memory, and CPUs have next to nothing to do.

There may be no GPU here, so a step is computed by one thread and then lasts as long as it would on a device:
its CPU idles meanwhile, as it does beside a GPU, and more CPUs change nothing.
"""

from __future__ import annotations

import argparse
import itertools
import time

import torch
from meter import Meter
from torch import nn
from torch.nn import functional

SAMPLES, FEATURES, WIDTH, CLASSES = 4096, 64, 128, 10
DEVICE_S = 0.02  # what a step takes on the device


def main() -> None:
    """Train until stopped."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, help="stop after this many steps")
    options.add_argument("--batch", type=int, default=64)
    given = options.parse_args()
    torch.set_num_threads(1)
    data, classes = torch.randn(SAMPLES, FEATURES), torch.randint(CLASSES, (SAMPLES,))
    model = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    meter = Meter()
    for _ in itertools.islice(itertools.count(), given.steps):
        ready_s = time.perf_counter() + DEVICE_S
        chosen = torch.randint(SAMPLES, (given.batch,))
        optimizer.zero_grad()
        functional.cross_entropy(model(data[chosen]), classes[chosen]).backward()
        optimizer.step()
        time.sleep(max(0.0, ready_s - time.perf_counter()))
        meter.add(given.batch)


if __name__ == "__main__":
    main()
