"""Order: Tiresias (Gu et al., NSDI'19)."""

from __future__ import annotations

from trainyard.policy.order.las import Las


class Tiresias(Las):
    """Two-queue discretised LAS on GPU-time (Gu et al., NSDI'19)."""

    def __init__(self, threshold_gpu_s: tuple[float, ...] = (18000.0,)) -> None:
        super().__init__(threshold_gpu_s=threshold_gpu_s)
