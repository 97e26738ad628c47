"""What a size stage believes of jobs: sizes, GPU types, speeds and what is left, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import set_numbers
from policy_cases import nodes_of, snapshot_of, two_types
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Loss, Profile, Sync
from trainyard.state.beliefs import MOST_FITS, MOST_SERVERS, Learned, Told

TOGETHER = Profile(batch=64, compute=Compute(0.01, {"GPU": 0.001}), sync=Sync("ps", gradient_mb=100.0))
APART = replace(TOGETHER, worker=Demand(1.0, 8.0), server=Demand(0.5, 4.0))
LOSS = Loss(b0=0.5, b1=1.0, b2=0.25, epoch_samples=10.0)


def job(name="a", gpus=1, **more):
    return Job(name, 0.0, gpus, duration_s=1000.0, **more)


def seen(snapshot, name, *runs):
    """Note that a job ran at some sizes: workers, servers, seconds, samples."""
    for workers, servers, seconds, samples in runs:
        snapshot.table.of[name].see().ran_at((workers, servers), seconds, samples)


def test_a_job_may_have_what_it_allows_and_there_is_for_it():
    jobs = [
        job("some", min_gpus=1, max_gpus=3),
        job("many", min_gpus=1, max_gpus=99),
        job("slow", gpu_type="K80", min_gpus=1, max_gpus=99),
        job("fast", gpu_type="V100", min_gpus=1, max_gpus=99),
    ]
    told = Told(snapshot_of(two_types(v100=2, k80=4), jobs))
    assert [told.most(row) for row in range(4)] == [3, 6, 4, 2]


def test_nobody_is_offered_fewer_gpus_than_it_needs():
    snapshot = snapshot_of(nodes_of(2), [job("large", 2, min_gpus=2, max_gpus=8)])
    assert Told(snapshot).most(0) == 2
    assert Told(snapshot).curve(0).size == 3


def test_a_job_is_thought_to_run_on_its_own_type_or_where_it_runs_or_on_the_fastest():
    jobs = [job("own", gpu_type="K80"), job("runs", 3), job("new")]
    snapshot = snapshot_of(two_types(v100=2, k80=4), jobs, {"runs": {"k": 2, "v": 1}})
    slow, fast = snapshot.nodes.types.index("K80"), snapshot.nodes.types.index("V100")
    told = Told(snapshot)
    assert [told.gpu_type(row) for row in range(3)] == [slow, slow, fast]


def test_a_job_with_a_type_of_its_own_is_thought_to_stay_on_it():
    for name, node in (("V100", "v"), ("K80", "k")):
        snapshot = snapshot_of(two_types(), [job("own", gpu_type=name)], {"own": {node: 1}})
        assert Told(snapshot).gpu_type(0) == snapshot.nodes.types.index(name)


@pytest.mark.parametrize(("profile", "apart"), [(None, False), (TOGETHER, False), (APART, True)])
def test_servers_count_only_if_they_hold_resources_of_their_own(profile, apart):
    assert Told(snapshot_of(nodes_of(4), [job(profile=profile)])).apart(0) == apart


def test_told_speeds_are_those_of_the_model():
    snapshot = snapshot_of(
        nodes_of(4), [job(profile=TOGETHER, max_gpus=4), job("b", profile=APART, max_gpus=4)]
    )
    told, model, (a, b) = Told(snapshot), snapshot.speed, snapshot.table.jobs
    assert told.curve(0).tolist() == model.curve(a, 0, 4).tolist()
    assert told.curve(0) is told.curve(0)
    assert told.surface(1).tolist() == model.surface(b, 0, 4, 4).tolist()
    assert told.speed(0, 3, 1) == model.curve(a, 0, 4)[3]
    assert told.speed(1, 3, 2) == model.surface(b, 0, 4, 4)[3, 2]
    assert told.speed(1, 3, 9) == model.surface(b, 0, 4, 4)[3, 4]  # as far as the surface goes
    assert len({told.speed(1, 3, servers) for servers in range(1, 5)}) == 4


def test_no_more_servers_are_tried_than_some():
    snapshot = snapshot_of(nodes_of(2), [job(profile=APART, max_gpus=99)])
    assert Told(snapshot).surface(0).shape == (3, MOST_SERVERS + 1)
    assert Learned(snapshot).surface(0).shape == (3, MOST_SERVERS + 1)


def test_who_has_not_run_is_believed_to_scale_linearly():
    snapshot = snapshot_of(nodes_of(4), [job(max_gpus=4), job("b", profile=APART, max_gpus=3)])
    learned = Learned(snapshot)
    assert learned.curve(0).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert learned.surface(1).tolist() == [[float(gpus)] * 4 for gpus in range(4)]


def test_who_has_run_is_believed_to_be_as_fast_as_it_was_seen():
    snapshot = snapshot_of(nodes_of(4), [job(profile=TOGETHER, max_gpus=4)])
    seen(snapshot, "a", (1, 1, 10.0, 50.0), (2, 2, 5.0, 40.0), (4, 4, 2.0, 24.0))
    speeds = Learned(snapshot).curve(0)
    assert speeds[0] == 0.0
    assert speeds[[1, 2, 4]] == pytest.approx([5.0, 8.0, 12.0], rel=0.05)


def test_speeds_are_fitted_once_until_something_new_is_seen():
    snapshot = snapshot_of(nodes_of(4), [job(max_gpus=4)])
    seen(snapshot, "a", (1, 0, 3.0, 10.0))
    first = Learned(snapshot).curve(0)
    seen(snapshot, "a", (1, 0, 6.0, 20.0))  # longer, as fast
    assert Learned(snapshot).curve(0) is first
    seen(snapshot, "a", (2, 0, 1.0, 6.0))
    again = Learned(snapshot).curve(0)
    assert again is not first
    assert again[2] == pytest.approx(6.0, rel=0.05)


def test_a_full_book_is_begun_anew():
    snapshot = snapshot_of(nodes_of(4), [job(max_gpus=4)])
    book = snapshot.caches["speeds"] = dict.fromkeys(range(MOST_FITS))
    Learned(snapshot).curve(0)
    assert len(book) == MOST_FITS + 1
    Learned(snapshot).curve(0)
    assert len(book) == 1


def left(done, *losses, loss=None, total=1000.0):
    """Samples that are believed to be left of a job that told these losses, one every ten samples."""
    snapshot = snapshot_of(nodes_of(1), [job(profile=replace(TOGETHER, loss=loss))])
    set_numbers(snapshot, "a", total=total, remaining=total - done)
    for at, told in enumerate(losses, 1):
        snapshot.table.of["a"].see().reported(10.0 * at, told)
    return float(Learned(snapshot, losses=True).left[0])


def test_who_told_no_loss_is_believed():
    assert left(30.0) == 970.0
    assert left(0.0, loss=LOSS) == 1000.0  # not one epoch yet


def test_too_few_losses_mean_twenty_epochs_more():
    assert left(10.0, 2.0) == 20 * 10.0
    assert left(20.0, 2.0, 1.5) == 20 * 10.0
    assert left(20.0, loss=LOSS) == 20 * 10.0  # two epochs of its curve


def test_three_losses_tell_when_the_curve_comes_to_rest():
    """1 / (0.5 k + 1) + 0.25 over its largest value falls by less than 5 % in ten epochs from epoch 16 on."""
    curve = [1 / (0.5 * k + 1) + 0.25 for k in range(1, 4)]
    largest = curve[0]

    def fall(k):
        return (1 / (0.5 * (k - 10) + 1) - 1 / (0.5 * k + 1)) / largest

    rest = next(k for k in range(11, 100) if fall(k) < 0.05)
    assert left(30.0, loss=LOSS) == pytest.approx(rest * 10.0 - 30.0)
    assert left(30.0, *curve) == pytest.approx(rest * 10.0 - 30.0, abs=10.0)


def test_who_should_be_at_rest_has_one_more_epoch():
    assert left(990.0, loss=LOSS) == 10.0


def test_unless_losses_are_asked_for_what_is_left_is_what_the_user_said():
    snapshot = snapshot_of(nodes_of(1), [job(profile=replace(TOGETHER, loss=LOSS))])
    set_numbers(snapshot, "a", total=1000.0, remaining=970.0)
    assert Learned(snapshot).left.tolist() == [970.0]
    assert Learned(snapshot, losses=True).left[0] < 970.0
