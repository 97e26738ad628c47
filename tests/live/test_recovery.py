"""A controller comes back: as it was, with what it had not done; and from no log that is not its own."""

import json

import pytest
from sqlalchemy import text

from live_cases import controller_of, hand_in
from recorded_logs import replay
from trainyard.core.events import JobFinished, PolicyChanged
from trainyard.core.twins import state_of
from trainyard.live.clock import SetClock
from trainyard.live.deciding import Decider
from trainyard.live.recovery import ReplayError
from trainyard.live.settings import Settings
from trainyard.live.store import reading
from trainyard.policy.grammar import parse_policy


def lead_a_life(controller, jobs=6):
    """Jobs come, run and end, with decisions between."""
    for i in range(jobs):
        controller.clock.now_s += 1.0
        hand_in(controller, f"j{i}", duration_s=100.0 - 10.0 * i)
        controller.decide()
        controller.commit()
    controller.clock.now_s += 1.0
    controller.tell(JobFinished(controller.clock.now(), "j0", attempt=1))
    controller.commit()
    controller.decide()
    controller.commit()


@pytest.mark.parametrize("snapshot_events", [1, 4, 1000])
def test_a_snapshot_and_the_log_since_then_lead_to_the_same_core(tmp_path, snapshot_events):
    clock, settings = SetClock(), Settings(snapshot_events=snapshot_events)
    with controller_of(tmp_path / "store.db", clock, settings=settings) as (controller, _):
        lead_a_life(controller)
        controller.publish_all()
        before, seq, views = state_of(controller.yard), controller.ledger.seq, controller.published.jobs()
    with controller_of(tmp_path / "store.db", clock, settings=settings) as (controller, _):
        assert json.dumps(state_of(controller.yard)) == json.dumps(before)
        assert (controller.ledger.seq, controller.number, controller.policy) == (seq, 6, "fifo")
        controller.publish_all()
        assert sorted(map(str, controller.published.jobs())) == sorted(map(str, views))
        controller.clock.now_s += 1.0
        hand_in(controller, "new")
    with controller_of(tmp_path / "store.db", clock) as (controller, _):
        assert controller.ledger.seq == seq + 1


def test_what_is_not_known_to_be_done_is_done_again(tmp_path):
    with controller_of(tmp_path / "store.db") as (controller, opened):
        assert opened == []
        hand_in(controller, "a")
        hand_in(controller, "b")
        controller.decide()
        controller.commit()
        first, second = controller.sent
        controller.mark_done([first], 1.0)
        controller.commit()
    with controller_of(tmp_path / "store.db") as (controller, opened):
        assert opened == [second]
        assert list(controller.started) == [first.key]  # only that may be missed if it is not there


def test_what_was_not_committed_did_not_happen(tmp_path):
    with controller_of(tmp_path / "store.db") as (controller, _):
        hand_in(controller, "a")
        controller.decide()  # and then it is killed
        assert controller.ledger.intents
    with controller_of(tmp_path / "store.db") as (controller, opened):
        assert opened == []
        assert controller.yard.find("a").attempt == 0
        assert controller.sent == []


def test_another_policy_is_found_again(tmp_path):
    with controller_of(tmp_path / "store.db") as (controller, _):
        controller.tell(PolicyChanged(1.0, "srtf"))
        controller.tell(PolicyChanged(1.0, "no such policy"))
        controller.commit()
        assert controller.policy == "srtf"
    with controller_of(tmp_path / "store.db", policy=None) as (controller, _):
        assert controller.policy == "srtf"


TAMPERED = {
    "an answer": "UPDATE events SET answer = '[]' WHERE kind = 'DecisionDue' AND seq = 2",
    "a plan": 'UPDATE events SET plan = \'{"changes": {}, "wake_s": "inf", "notes": {}}\' WHERE seq = 2',
    "an event": "DELETE FROM events WHERE seq = 3",
    "an intent": "DELETE FROM intents WHERE seq = 2",
    "another attempt": "UPDATE intents SET attempt = 7 WHERE seq = 2",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_log_that_was_tampered_with_is_refused(what, tmp_path, spoilt):
    url = f"sqlite:///{tmp_path}/store.db"
    with controller_of(tmp_path / "store.db") as (controller, _):
        lead_a_life(controller)
        with controller.store.engine.connect() as connection:
            connection.execute(text(TAMPERED[what]))
            connection.commit()
    spoilt.add(url)
    with pytest.raises(ReplayError):
        replay(url)
    with pytest.raises(ReplayError), controller_of(tmp_path / "store.db"):
        pass


def test_a_core_that_was_tampered_with_is_noticed(tmp_path, spoilt):
    url = f"sqlite:///{tmp_path}/store.db"
    with controller_of(tmp_path / "store.db") as (controller, _):
        lead_a_life(controller)
        controller.take_snapshot()
        controller.commit()
        with controller.store.engine.connect() as connection:
            state = reading.latest_snapshot(connection).state
            changed = reading.pack(state | {"seq": -1})
            connection.execute(
                text("UPDATE snapshots SET state = :state WHERE seq = :seq"),
                {"state": changed, "seq": controller.ledger.seq},
            )
            connection.commit()
    spoilt.add(url)
    with pytest.raises(ReplayError, match=r"the core after event .* is not as it was written down"):
        replay(url)


def test_a_policy_that_decides_otherwise_is_noticed_and_does_not_disturb_a_recovery(tmp_path, spoilt):
    """What was decided is read, not decided again: an upgrade of a policy changes nothing of the past."""
    url = f"sqlite:///{tmp_path}/store.db"
    with controller_of(tmp_path / "store.db") as (controller, _):
        lead_a_life(controller)
    assert replay(url) == 14
    with pytest.raises(ReplayError):
        replay(url, Decider(lambda name: parse_policy("srtf")))
    with controller_of(tmp_path / "store.db") as (controller, _):
        assert controller.ledger.seq == 14
