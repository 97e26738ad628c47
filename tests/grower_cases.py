"""Growers of size stages, drawn by hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.zoo import zoo_profile
from trainyard.policy.size.growth import Grower


@st.composite
def a_grower(draw):
    rows, columns = draw(st.integers(2, 7)), draw(st.integers(1, 6))
    least = draw(st.integers(1, rows - 1)), min(1, columns - 1)
    speeds = draw(st.lists(st.integers(1, 60), min_size=rows * columns, max_size=rows * columns))
    # In sixteenths sums are exact, so that who has the smaller share is not a matter of rounding.
    part = st.sampled_from([1 / 16, 2 / 16, 3 / 16])
    worker = draw(part), draw(part), 0.0
    server = (0.0, draw(part), draw(part)) if columns > 1 else (0.0, 0.0, 0.0)
    table = np.array(speeds, dtype=float).reshape(rows, columns)
    return Grower(table, least, worker, server, draw(st.sampled_from([1.0, 2.0])))


def profiles():
    ps = {"batch": 64, "compute": Compute(0.01, {"GPU": 0.002})}
    return {
        "ring": zoo_profile("resnet50"),
        "servers beside the workers": Profile(**ps, sync=Sync("ps", gradient_mb=100.0)),
        "servers of their own": Profile(
            **ps, sync=Sync("ps", gradient_mb=100.0), worker=Demand(2.0, 16.0), server=Demand(1.0, 8.0)
        ),
    }
