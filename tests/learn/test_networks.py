"""The networks: the same in PyTorch and NumPy, equivariant over jobs, with the right gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trainyard.learn.networks import arrays_of, entropy, log_probs, make, value_of
from trainyard.policy.size.dl2.network import network_of

pytestmark = pytest.mark.torch
OF_JOB, OF_CLUSTER = 7, 3


def inputs(counts, width, seed=0):
    rng = np.random.default_rng(seed)
    jobs = np.zeros((len(counts), width, OF_JOB), dtype=np.float32)
    mask = np.zeros((len(counts), 1 + 3 * width), dtype=np.bool_)
    mask[:, 0] = True
    for b, n in enumerate(counts):
        jobs[b, :n] = rng.normal(size=(n, OF_JOB))
        jobs[b, :n, 0] = 1.0
        mask[b, 1 : 1 + 3 * n] = rng.random(3 * n) < 0.7
    cluster = rng.normal(size=(len(counts), OF_CLUSTER)).astype(np.float32)
    return jobs, cluster, mask


def network(kind, outputs=3, dtype=torch.float32):
    torch.manual_seed(1)
    return make(kind, OF_JOB, OF_CLUSTER, outputs, hidden=8, window=5).to(dtype)


def tensors(arrays):
    return [torch.from_numpy(array) for array in arrays]


@pytest.mark.parametrize("kind", ["set", "window"])
@pytest.mark.parametrize("count", [1, 4, 9])
def test_numpy_and_torch_agree(kind, count):
    jobs, cluster, _ = inputs([count], count)
    policy = network(kind)
    plain = network_of(kind, arrays_of(policy), "here")
    plain.open(jobs[0].copy())
    for seed in range(3):
        with torch.no_grad():
            numbers, stop = policy(torch.from_numpy(jobs), torch.from_numpy(cluster))
        told = np.concatenate([stop[0].numpy(), numbers[0].numpy().ravel()])
        np.testing.assert_allclose(plain.logits(cluster[0]), told, atol=1e-5)
        some = np.array([0, count - 1][: min(2, count)])
        jobs[0, some] = inputs([count], count, seed + 10)[0][0, some]  # only these change
        plain.change(some, jobs[0, some])


def test_the_order_of_jobs_makes_no_difference_to_the_set_network():
    jobs, cluster, mask = inputs([6, 3], 6)
    order = np.array([2, 0, 1])
    moved, moved_mask = jobs.copy(), mask.copy()
    moved[1, :3] = jobs[1, order]
    moved_mask[1, 1:10] = mask[1, 1:10].reshape(3, 3)[order].ravel()
    policy, value = network("set"), network("set", 1)
    with torch.no_grad():
        before = log_probs(policy, *tensors((jobs, cluster, mask))).numpy()
        after = log_probs(policy, *tensors((moved, cluster, moved_mask))).numpy()
        values = [value_of(value, *tensors(pair)).numpy() for pair in ((jobs, cluster), (moved, cluster))]
    np.testing.assert_allclose(before[1, 1:10].reshape(3, 3)[order], after[1, 1:10].reshape(3, 3), atol=1e-5)
    np.testing.assert_allclose(before[0], after[0], atol=1e-6)
    np.testing.assert_allclose(*values, atol=1e-5)


def test_padding_makes_no_difference_to_the_set_network():
    narrow, wide = inputs([4], 4), inputs([4], 9)
    wide[0][0, :4] = narrow[0][0]
    wide[1][:] = narrow[1]
    wide[2][0, :13] = narrow[2][0]
    wide[2][0, 13:] = False
    policy = network("set")
    with torch.no_grad():
        one, other = (log_probs(policy, *tensors(each))[0].numpy() for each in (narrow, wide))
    np.testing.assert_allclose(one, other[:13], atol=1e-6)


@pytest.mark.parametrize("kind", ["set", "window"])
def test_what_is_not_legal_has_no_probability_and_no_entropy(kind):
    jobs, cluster, mask = inputs([4, 0, 9], 9)
    with torch.no_grad():
        logs = log_probs(network(kind), *tensors((jobs, cluster, mask)))
    likely = logs.exp().numpy()
    assert not likely[~mask].any()
    np.testing.assert_allclose(likely.sum(axis=1), 1.0, atol=1e-5)
    assert likely[1, 0] == 1.0  # without jobs there is only stop
    some = likely[0][likely[0] > 0]
    assert entropy(logs)[0].item() == pytest.approx(-(some * np.log(some)).sum(), abs=1e-5)
    assert entropy(logs)[1].item() == 0.0
    assert not logs.isnan().any()


@pytest.mark.parametrize("kind", ["set", "window"])
def test_gradients_are_finite_differences(kind):
    jobs, cluster, mask = inputs([4, 2, 5], 5)
    torch.set_default_dtype(torch.float64)
    try:
        policy = network(kind, dtype=torch.float64)
        given = (torch.tensor(jobs, dtype=torch.float64), torch.tensor(cluster, dtype=torch.float64))
        actions = torch.from_numpy(mask.argmax(axis=1))

        def loss():
            logs = log_probs(policy, *given, torch.from_numpy(mask))
            return -logs.gather(1, actions[:, None]).mean() - 0.1 * entropy(logs).mean()

        loss().backward()
        for parameter in policy.parameters():
            flat, slope = parameter.data.view(-1), parameter.grad.view(-1)
            for i in {0, len(flat) // 2, len(flat) - 1}:
                kept, step = flat[i].item(), 1e-6
                flat[i] = kept + step
                above = loss().item()
                flat[i] = kept - step
                below = loss().item()
                flat[i] = kept
                assert slope[i].item() == pytest.approx((above - below) / (2 * step), abs=1e-6)
    finally:
        torch.set_default_dtype(torch.float32)
