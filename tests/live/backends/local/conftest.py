from __future__ import annotations

import pytest

from local_cases import NO_GROUPS, Bench, groups_or_skip


@pytest.fixture
def bench(tmp_path):
    """A backend without cgroups."""
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["without cgroups", "with cgroups"])
def either(tmp_path, request):
    """A backend without cgroups, and one with them where the system allows it."""
    made = Bench(tmp_path, groups_or_skip() if request.param == "with cgroups" else NO_GROUPS)
    yield made
    made.close()


@pytest.fixture
def grouped(tmp_path):
    """A backend with cgroups."""
    made = Bench(tmp_path, groups_or_skip())
    yield made
    made.close()
