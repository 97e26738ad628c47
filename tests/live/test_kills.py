"""Nothing is lost and nothing runs twice, whenever a controller, a shim or a worker is killed.

`make kills` does the same a thousand times, on PostgreSQL as well.
"""

import pytest

from broken_protocols import MISTAKES, play
from kill_cases import AT_WORK, IN_RECOVERY, Plan
from kill_checks import run

LABELS = {*AT_WORK, *IN_RECOVERY}


def test_a_few_kills_lose_nothing_and_repeat_little(tmp_path):
    plan = Plan(2, tmp_path / "jobs", f"sqlite:///{tmp_path}/store.db", kills=6, jobs=6, steps=40)
    found = run(plan)
    assert found.wrong == []
    assert found.kills.total() >= 3
    assert LABELS & set(found.kills)
    assert found.events > 20


@pytest.mark.parametrize("name", MISTAKES)
def test_a_broken_protocol_is_noticed(name, tmp_path):
    found = play(name, tmp_path / "jobs", f"sqlite:///{tmp_path}/store.db", broken=True)
    assert MISTAKES[name].evidence in "; ".join(found.wrong)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_right_protocol_survives_the_same_lives(name, tmp_path):
    found = play(name, tmp_path / "jobs", f"sqlite:///{tmp_path}/store.db", broken=False)
    assert found.wrong == []
    assert found.kills.total() == 1
