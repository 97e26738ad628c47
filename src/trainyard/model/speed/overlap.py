"""How communication hides behind computation, layer by layer (SMD, section on layer timing).

Layers 1..N are on the last axis, in forward order; the backward pass runs N -> 1 and the forward pass of the
next step 1 -> N. b_j and f_j are the seconds of layer j backward and forward. `push_j` is what must reach the
others before layer j can be updated, `pull_j` what must come back: with parameter servers both are the
one-way time r_j (the link carries both ways at once), with an all-reduce push_j is the whole all-reduce,
which fills both ways, and pull_j is 0.

    sequential      sum b + sum push + sum pull + sum f
    wait-free       Lemma 1: a layer's gradients leave as soon as its backward pass is done and the link is
                    free; the forward pass starts when everything is back
    priority        Lemma 2 as printed: layers nearer the input overtake; the forward pass of a layer starts
                    as soon as that layer is back (it counts too much when several layers are late)
    priority-exact  the same rule, played through: preemptive priority on one link in slices of no length

Without layers a network is the limit of many equal layers, whose backward pass takes twice as long as the
forward: wait-free is f + max(b, push) and both priorities are max(b + f, push).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.profile import Layer, Overlap, Sync

BACKWARD_SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class LayerShares:
    """Each layer's part of a step's computation (forward and backward add up to one) and gradients."""

    forward: Floats
    backward: Floats
    gradient: Floats


def layer_shares(layers: Sequence[Layer]) -> LayerShares:
    """Turn a profile's layers into proportions; where all layers are zero they are taken as equal."""
    forward = np.array([layer.forward_s for layer in layers])
    backward = np.array([layer.backward_s for layer in layers])
    mb = np.array([layer.mb for layer in layers], dtype=np.float64)
    if not (forward.any() or backward.any()):
        forward, backward = np.full_like(mb, 1 - BACKWARD_SHARE), np.full_like(mb, BACKWARD_SHARE)
    total = forward.sum() + backward.sum()
    gradient = mb / mb.sum() if mb.any() else np.full(len(layers), 1 / len(layers))
    return LayerShares(forward / total, backward / total, gradient)


def overlapped_s(
    sync: Sync, shares: LayerShares | None, fixed_s: float, variable: Floats, push: Floats, pull: Floats
) -> Floats:
    """Seconds of computation and communication of a step for each row, given both as wholes."""
    if sync.overlap == "sequential":
        eta1, eta2, eta3 = sync.eta
        return eta1 * variable + eta2 * fixed_s + eta3 * (push + pull)
    compute = fixed_s + variable
    if shares is None:
        return _many_layers(sync.overlap, compute, push)
    forward, backward = compute[:, None] * shares.forward, compute[:, None] * shares.backward
    pushes = push[:, None] * shares.gradient
    if sync.overlap == "wait-free":
        return wait_free(forward, backward, pushes, pull[:, None] * shares.gradient)
    return (priority_printed if sync.overlap == "priority" else priority_exact)(forward, backward, pushes)


def sequential(forward: Floats, backward: Floats, push: Floats, pull: Floats) -> Floats:
    """Nothing overlaps: the sum of everything."""
    return _total(backward) + _total(push) + _total(pull) + _total(forward)


def wait_free(forward: Floats, backward: Floats, push: Floats, pull: Floats) -> Floats:
    """Lemma 1: seconds of a step when gradients leave as soon as they exist."""
    _, pulls = _wait_free_starts(backward, push, pull)
    return pulls[..., 0] + pull[..., 0] + _total(forward)


def priority_printed(forward: Floats, backward: Floats, push: Floats, slice_s: float = 0.0) -> Floats:
    """Lemma 2 as printed, with slices of `slice_s`."""
    first = _total(backward) + push[..., 0] + slice_s
    late = np.cumsum(push, -1) - push[..., :1] - (np.cumsum(backward, -1) - backward)
    ready, latest = [first], first
    for j in range(1, push.shape[-1]):
        ready.append(np.where(late[..., j] > 0, latest + late[..., j], 0.0))
        latest = np.maximum(latest, ready[-1])
    return _forward_pass(forward, np.stack(ready, -1))[..., -1] + forward[..., -1]


def priority_exact(forward: Floats, backward: Floats, push: Floats) -> Floats:
    """Seconds of a step when the layer nearest the input always has the link, at any moment."""
    return _forward_pass(forward, _priority_ends(backward, push))[..., -1] + forward[..., -1]


def overlap_coefficients(
    kind: Overlap, forward: Floats, backward: Floats, one_way: Floats
) -> tuple[float, float, float]:
    """Return (eta1, eta2, eta3): the parts of forward, backward and 2 x one-way time that remain visible.

    The timeline is split exclusively, communication first: a moment counts as communication if anything is on
    the wire, else as whatever pass is running. The three parts add up to the step.
    """
    if kind == "sequential":
        return 1.0, 1.0, 1.0
    none = np.zeros_like(one_way)
    pushes, pulls = _wait_free_starts(backward, one_way, one_way if kind == "wait-free" else none)
    if kind == "wait-free":
        starts, wire = np.full(len(forward), pulls[0] + one_way[0]), np.concatenate([pushes, pulls])
    else:
        # The link never rests while something waits, so it is busy at the same moments in any order.
        starts, wire = _priority_ends(backward, one_way), pushes
    starts = _forward_pass(forward, starts)
    wire_ends = wire + np.tile(one_way, len(wire) // len(one_way))
    return _shares_of_timeline((starts, forward), backward, (wire, wire_ends), 2 * one_way.sum())


def _many_layers(kind: Overlap, compute: Floats, push: Floats) -> Floats:
    backward = BACKWARD_SHARE * compute
    if kind == "wait-free":
        return (compute - backward) + np.maximum(backward, push)
    return np.maximum(compute, push)


def _total(layers: Floats) -> Floats:
    total: Floats = layers.sum(-1)
    return total


def _backward_ends(backward: Floats) -> Floats:
    return np.cumsum(backward[..., ::-1], -1)[..., ::-1]


def _wait_free_starts(backward: Floats, push: Floats, pull: Floats) -> tuple[Floats, Floats]:
    """When each layer's push (kappa) and pull (s) starts."""
    computed = _backward_ends(backward)
    pushes, pulls = np.empty_like(push), np.empty_like(push)
    link_free = pull_free = np.zeros(push.shape[:-1])
    for j in reversed(range(push.shape[-1])):
        pushes[..., j] = np.maximum(computed[..., j], link_free)
        link_free = pushes[..., j] + push[..., j]
        pulls[..., j] = np.maximum(link_free, pull_free)
        pull_free = pulls[..., j] + pull[..., j]
    return pushes, pulls


def _priority_ends(backward: Floats, push: Floats) -> Floats:
    """When each layer is through, or the end of the backward pass if it was through before."""
    left = push.copy()
    for j in range(push.shape[-1] - 1, 0, -1):
        # While layer j-1 computes, the link serves the layers that wait, j first.
        waiting = left[..., j:]
        before = np.cumsum(waiting, -1) - waiting
        left[..., j:] -= np.clip(backward[..., j - 1, None] - before, 0.0, waiting)
    return _total(backward)[..., None] + np.cumsum(left, -1)


def _forward_pass(forward: Floats, ready: Floats) -> Floats:
    """When each layer's forward pass starts, given when its parameters are ready."""
    starts = np.empty_like(ready)
    starts[..., 0] = ready[..., 0]
    for j in range(1, ready.shape[-1]):
        starts[..., j] = np.maximum(starts[..., j - 1] + forward[..., j - 1], ready[..., j])
    return starts


def _shares_of_timeline(
    forward: tuple[Floats, Floats], backward: Floats, wire: tuple[Floats, Floats], wire_s: float
) -> tuple[float, float, float]:
    starts, lasts = forward
    cuts = np.unique(np.concatenate([starts, starts + lasts, [0.0, backward.sum()], *wire]))
    middle, length = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    on_wire = ((wire[0][:, None] < middle) & (middle < wire[1][:, None])).any(axis=0)
    in_backward = ~on_wire & (middle < backward.sum())
    in_forward = ~on_wire & ~in_backward
    return (
        float(length[in_forward].sum() / lasts.sum()),
        float(length[in_backward].sum() / backward.sum()),
        float(length[on_wire].sum() / wire_s),
    )
