"""The time of a sample as a sum of ratios of workers w and parameter servers p (SMD, equations 4 and 5).

    seconds per sample = constant + a w + b p + c w/p + d p/w + e/w + f/p

That is what the speed model comes to where nothing overlaps, nothing is measured in tables and the input is
no limit. With strong scaling a step is as long as `compute`, `paramserver` and `overlap` say; with weak
scaling w batches are done in it.
"""

from __future__ import annotations

from typing import NamedTuple

from trainyard.model.profile import Compute, Profile, Sync


class Ratios(NamedTuple):
    """The factors, in seconds per sample."""

    constant: float
    workers: float  # a
    servers: float  # b
    workers_per_server: float  # c
    servers_per_worker: float  # d
    per_worker: float  # e
    per_server: float  # f


def ratios_of(profile: Profile, per_sample_s: float, bandwidth_gbps: float) -> Ratios | None:
    """Return the factors on GPUs of one type; None if the speed of the job has another form."""
    sync, compute = profile.sync, profile.compute
    if sync is None or compute is None or not profile.apart or sync.overlap != "sequential":
        return None
    if profile.tables or profile.layers or profile.input:
        return None
    step = _step(profile, sync, compute, per_sample_s, bandwidth_gbps)
    return Ratios(*(factor / profile.batch for factor in step))


def _step(
    profile: Profile, sync: Sync, compute: Compute, per_sample_s: float, bandwidth_gbps: float
) -> Ratios:
    """Seconds of a step of all workers together, or of each worker."""
    share = sync.async_share if sync.mode == "async" else 1.0
    wire_s = 2 * sync.eta[2] * share * sync.gradient_mb * 8e-3 / bandwidth_gbps
    fixed_s, batch_s = sync.eta[1] * compute.fixed_s, sync.eta[0] * profile.batch * per_sample_s
    worker_s, server_s = sync.worker_overhead_s, sync.server_overhead_s
    if profile.scaling == "strong":
        return Ratios(fixed_s, worker_s, server_s, wire_s, 0.0, batch_s, 0.0)
    return Ratios(worker_s, 0.0, 0.0, 0.0, server_s, fixed_s + batch_s, wire_s)
