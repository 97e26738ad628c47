"""Training that waits for its input: every image is unpacked, cropped, resized and jittered on CPUs.

One loader process per CPU, and a network so small that it never has to wait for itself.
"""

from __future__ import annotations

import argparse
import itertools
import zlib

import torch
from meter import Meter, cpus
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

SIZE, CROP, CLASSES = 256, 64, 10


class PackedImages(IterableDataset):
    """Compressed images without end, each decoded and augmented anew."""

    def __init__(self) -> None:
        make = torch.Generator().manual_seed(0)
        smooth = [torch.rand(1, 3, 8, 8, generator=make) for _ in range(16)]
        images = [
            (functional.interpolate(image, SIZE, mode="bicubic").clamp(0, 1) * 255).byte() for image in smooth
        ]
        self._packed = [zlib.compress(image.numpy().tobytes()) for image in images]

    def __iter__(self) -> itertools.chain[tuple[torch.Tensor, int]]:
        """Yield (image, class) for ever."""
        numbers = itertools.cycle(range(len(self._packed)))
        return ((self._augmented(self._packed[i]), i % CLASSES) for i in numbers)

    def _augmented(self, packed: bytes) -> torch.Tensor:
        image = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8)
        image = image.view(1, 3, SIZE, SIZE).float() / 255
        side = int(torch.randint(SIZE // 2, SIZE, ()))
        top, left = (int(torch.randint(0, SIZE - side + 1, ())) for _ in range(2))
        image = functional.interpolate(
            image[..., top : top + side, left : left + side], CROP * 2, mode="bicubic"
        )
        image = functional.avg_pool2d(image, 2)[0]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        image = image * (0.8 + 0.4 * torch.rand(3, 1, 1)) + 0.1 * torch.randn(3, 1, 1)
        return (image - image.mean()) / image.std()


def main() -> None:
    """Train until stopped."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, help="stop after this many steps")
    options.add_argument("--batch", type=int, default=16)
    given = options.parse_args()
    torch.set_num_threads(1)
    loader = DataLoader(PackedImages(), batch_size=given.batch, num_workers=cpus())
    model = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(3 * (CROP // 8) ** 2, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    meter = Meter()
    for images, classes in itertools.islice(loader, given.steps):
        optimizer.zero_grad()
        functional.cross_entropy(model(images), classes).backward()
        optimizer.step()
        meter.add(len(images))


if __name__ == "__main__":
    main()
