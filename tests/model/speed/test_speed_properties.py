"""Properties of the speed model over random profiles, shapes and layers."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Input, Layer, Profile, Sync, Tables
from trainyard.model.speed import Shapes, SpeedModel
from trainyard.model.speed.compute import variable_s
from trainyard.model.speed.inputs import hit_rate, input_cpu_s, input_storage_s
from trainyard.model.speed.overlap import priority_exact, priority_printed, sequential, wait_free
from trainyard.model.speed.tables import table_of

CLUSTER = Cluster(
    "three",
    (
        Node("V100-0", "V100", 8, 24, 500),
        Node("V100-1", "V100", 4, 30, 100, network_gbps=25),
        Node("P100-0", "P100", 4, 16, 128),
        Node("K80-0", "K80", 8, 7, 99, storage_mbps=123),
    ),
    {"P100": GpuType("P100", 0.6), "K80": GpuType("K80", 0.1)},
)
TYPES = ("V100", "P100", "K80")

seconds = st.floats(1e-4, 10)
amounts = st.floats(0, 1000)
points = st.tuples(st.integers(1, 9), st.integers(0, 5), st.floats(0.1, 1000))
layers = st.lists(st.builds(Layer, *[st.just(0.0) | seconds] * 2, st.floats(0, 50)), max_size=12).map(tuple)
tables = st.builds(
    Tables,
    st.lists(points, max_size=12).map(tuple),
    st.lists(st.tuples(st.integers(1, 9), st.integers(10, 15), st.floats(0.1, 1000)), max_size=12).map(tuple),
)
syncs = st.builds(
    Sync,
    kind=st.sampled_from(["ring", "ps", "none"]),
    mode=st.sampled_from(["sync", "async"]),
    gradient_mb=st.floats(0, 2000),
    algorithm=st.sampled_from(["ring", "halving-doubling", "binary-blocks", "auto"]),
    cost_preset=st.sampled_from(["thakur", "capes"]),
    reduce_s_per_gb=st.floats(0, 1),
    overlap=st.sampled_from(["sequential", "wait-free", "priority", "priority-exact"]),
    worker_overhead_s=st.floats(0, 0.1),
    server_overhead_s=st.floats(0, 0.1),
    async_share=st.floats(0.1, 1),
)
profiles = st.builds(
    Profile,
    batch=st.integers(1, 4096),
    scaling=st.sampled_from(["strong", "weak"]),
    compute=st.none()
    | st.builds(
        Compute,
        st.just(0.0) | seconds,
        st.dictionaries(st.sampled_from(TYPES), seconds),
        st.sampled_from(["proportional", "equal"]),
    ),
    sync=st.none() | syncs,
    layers=layers,
    input=st.none() | st.builds(Input, st.floats(0, 0.1), st.floats(0, 1000), st.floats(0, 1000)),
    tables=st.none() | tables,
)
shares = st.builds(
    Share,
    st.sampled_from([node.node_id for node in CLUSTER.nodes]),
    st.integers(0, 4),
    st.integers(0, 3),
    st.floats(0, 30),
    st.floats(0, 500),
)
allocations = st.lists(shares, max_size=4, unique_by=lambda share: share.node).map(
    lambda held: Allocation(tuple(held))
)


def row(shapes, i):
    return Shapes(*(getattr(shapes, name)[i : i + 1] for name in Shapes.__slots__))


@given(st.none() | profiles, st.lists(allocations, min_size=1, max_size=20))
def test_many_rows_give_what_each_gives_alone(profile, held):
    model = SpeedModel(CLUSTER)
    shapes = model.shapes_of(held)
    speeds = model.bulk(profile, shapes)
    job = Job("j", 0.0, 4, duration_s=1.0, profile=profile)
    assert np.isfinite(speeds).all()
    assert (speeds >= 0).all()
    for i, allocation in enumerate(held):
        assert model.bulk(profile, row(shapes, i))[0] == speeds[i]
        assert model.rate(job, allocation) == speeds[i]
        assert model.rate(job, allocation) == speeds[i]


@st.composite
def layer_times(draw):
    count = draw(st.integers(1, 10))
    times = st.lists(seconds, min_size=count, max_size=count).map(np.array)
    return draw(times), draw(times), draw(times)


@given(layer_times())
def test_more_overlap_is_never_slower(times):
    forward, backward, one_way = times
    exact = priority_exact(forward, backward, one_way)
    overlapped = wait_free(forward, backward, one_way, one_way)
    least = forward.sum() + backward.sum()
    slack = 1 + 1e-12
    assert least <= exact * slack
    assert exact <= overlapped * slack
    assert exact <= priority_printed(forward, backward, one_way) * slack
    assert overlapped <= sequential(forward, backward, one_way, one_way) * slack


@given(st.lists(st.integers(0, 8), min_size=3, max_size=3), st.lists(seconds, min_size=3, max_size=3))
def test_proportional_split_is_never_slower_than_equal(counts, per_sample):
    assume(sum(counts) > 0)
    samples, workers, times = np.array([64.0]), np.array([counts]), np.array(per_sample)
    proportional = variable_s("proportional", samples, workers, times)[0]
    assert proportional <= variable_s("equal", samples, workers, times)[0] * (1 + 1e-12)


@given(
    st.builds(Input, st.floats(0, 1), amounts, amounts), st.lists(amounts, min_size=2, max_size=20), amounts
)
def test_more_memory_cpus_and_storage_never_slow_the_input(known, held, other):
    held = np.sort(np.array(held))
    samples, fixed = np.full(len(held), 32.0), np.full(len(held), other)
    with np.errstate(all="ignore"):
        read_by_memory = input_storage_s(known, samples, held, fixed)
        read_by_storage = input_storage_s(known, samples, fixed, held)
        prepared = input_cpu_s(known, samples, held)
        assert (np.diff(hit_rate(known, held)) >= 0).all()
    for times in (read_by_memory, read_by_storage, prepared):
        assert (times[1:] <= times[:-1]).all()


@given(st.lists(points, min_size=1, max_size=25, unique_by=lambda point: point[:2]))
def test_tables_are_exact_where_measured(rows):
    table = np.array(rows, dtype=np.float64)
    found = table_of(rows).at(table[:, 0], table[:, 1])
    assert np.allclose(found, table[:, 2], rtol=1e-9, atol=1e-9)


@given(st.integers(1, 64), st.sampled_from(TYPES))
def test_proportional_shapes_grow_with_the_gpus(gpus, gpu_type):
    model = SpeedModel(CLUSTER)
    workers = np.zeros((2, 3), dtype=np.int64)
    workers[:, TYPES.index(gpu_type)] = [gpus, gpus + 1]
    packed = model.proportional(workers)
    for name in ("nodes", "cpus", "memory_gb", "storage_mbps"):
        fewer, more = getattr(packed, name)
        assert fewer <= more
