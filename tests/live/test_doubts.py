"""What nobody believes of a job's progress is written into its story, once for each attempt."""

from __future__ import annotations

from live_cases import controller_of, hand_in
from trainyard.core.events import ProgressReported
from trainyard.live.store import reading
from trainyard.model.terms import Terms


def test_a_jump_is_told_in_the_story_once(tmp_path):
    with controller_of(tmp_path / "store.db") as (controller, _):
        hand_in(controller, "a", duration_s=None, terms=Terms())
        controller.decide()
        for at_s, done in ((10.0, 1.0), (20.0, 101.0), (30.0, 9e9), (31.0, 9.1e9), (40.0, 301.0)):
            controller.clock.now_s = at_s
            controller.tell(ProgressReported(at_s, "a", done), "backend")
        controller.commit()
        with controller.store.engine.connect() as connection:
            story = [row["text"] for row in reading.story_of(connection, "a")]
        assert [line for line in story if "ignored" in line] == [
            "job a says that it did 8999999899 samples in 10 s; "
            "it was never faster than 10 a second, so that is ignored"
        ]
        assert controller.yard.find("a").done_at(40.0) == 301.0
