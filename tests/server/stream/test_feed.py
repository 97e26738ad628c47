"""Events: merged, replayed, begun anew where too much was missed; output comes before the end of its job."""

from __future__ import annotations

import time

import pytest

from server_cases import PATIENCE_S, served, told
from trainyard.live.published import KEPT


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with served(tmp_path_factory.mktemp("events")) as running:
        yield running


def take(events, wanted):
    """Read events until one is wanted; return all that came."""
    seen = []
    for event in events:
        seen.append(event)
        if wanted(*event):
            return seen
    raise AssertionError("the stream ended")


def is_over(job_id):
    def looks(name, data, _):
        return name == "delta" and any(j["job_id"] == job_id and j["state"] == "done" for j in data["jobs"])

    return looks


def test_the_first_event_says_where_the_reader_is(api):
    with api.events() as events:
        name, data, identity = next(events)
    assert (name, data["jobs"]) == ("delta", [])
    assert identity == f"1.{data['v']}"
    assert data["after"] == data["v"]


def test_a_jobs_life_comes_as_deltas_without_gaps(api):
    with api.events() as events:
        name, data, _ = next(events)
        before = data["v"]
        job_id = api.submit()["job_id"]
        seen = take(events, is_over(job_id))
    for name, data, identity in seen:
        if name:
            assert (name, data["after"], identity) == ("delta", before, f"1.{data['v']}")
            assert data["v"] > before
            before = data["v"]
    states = [job["state"] for _, data, _ in seen if data for job in data["jobs"] if job["job_id"] == job_id]
    assert states[-1] == "done"
    assert seen[-1][1]["jobs"][0].keys() == api.get("/jobs").json()["jobs"][0].keys()


def test_the_end_of_a_job_is_told_at_once(tmp_path):
    """Nobody looks for an hour: the shim says that there is something to see."""
    with served(tmp_path, observe_s=3600.0) as api, api.events() as events:
        next(events)
        began = time.monotonic()
        job_id = api.submit()["job_id"]
        take(events, is_over(job_id))
        assert time.monotonic() - began < PATIENCE_S


def test_who_comes_back_gets_what_it_missed_once(api):
    with api.events() as events:
        _, _, identity = next(events)
    ids = [api.submit()["job_id"] for _ in range(3)]
    for job_id in ids:
        api.wait(job_id)
    for way in (
        {"after": identity},
        {"last-event-id": identity},
        {"after": "1.0", "last-event-id": identity},
    ):
        with api.events(**way) as events:
            name, data, now = next(events)
        assert name == "delta"
        assert data["after"] == int(identity.split(".")[1])
        assert now == f"1.{data['v']}"
        assert {job["job_id"]: job["state"] for job in data["jobs"]} == dict.fromkeys(ids, "done")


@pytest.mark.parametrize("after", ["0.1", "2.1", "1.999999", "nonsense", "1.x"])
def test_who_was_never_here_has_to_load_again(api, after):
    with api.events(after=after) as events:
        name, data, identity = next(events)
    assert (name, data) == ("reset", {})
    assert identity.startswith("1.")


def test_who_missed_too_much_has_to_load_again(api):
    with api.events() as events:
        _, data, identity = next(events)
    published = api.desk.controller.published
    for i in range(KEPT + 1):
        view = {"job_id": "901", "state": "running", "samples_done": i}
        published.update({"901": view}, published.nodes, published.status)
    with api.events(after=identity) as events:
        assert next(events)[0] == "reset"
    with api.events(after=f"1.{data['v'] + 2}") as events:
        assert next(events)[0] == "delta"
    published.forget("901")


def test_many_changes_are_one_delta(api):
    published = api.desk.controller.published
    with api.events() as events:
        next(events)
        for i in range(50):
            view = {"job_id": "900", "state": "running", "samples_done": i}
            published.update({"900": view}, published.nodes, published.status)
        seen = take(
            events,
            lambda name, data, _: bool(data) and any(j.get("samples_done") == 49 for j in data["jobs"]),
        )
    published.forget("900")
    assert len([name for name, *_ in seen if name == "delta"]) < 25
    for _, data, _ in seen:
        assert len({job["job_id"] for job in data["jobs"]} if data else ()) == len(
            data["jobs"] if data else ()
        )


def test_a_reader_of_one_job_hears_of_no_other(api):
    one = api.submit("sleep 0.5")["job_id"]
    with api.events(f"job:{one}") as events:
        api.wait(api.submit()["job_id"])
        seen = take(events, is_over(one))
    told_of = {job["job_id"] for name, data, _ in seen if name == "delta" for job in data["jobs"]}
    assert told_of == {one}
    assert all("nodes" not in data for name, data, _ in seen if name == "delta")


def test_a_story_comes_whole_and_then_as_it_goes_on(api):
    job_id = api.submit("sleep 0.5")["job_id"]
    with api.events(f"job:{job_id}") as events:
        seen = take(events, is_over(job_id))
    rows = [data for name, data, _ in seen if name == "story"]
    stored = api.get(f"/jobs/{job_id}/story").json()["story"]
    assert [{key: row[key] for key in stored[0]} for row in rows] == stored
    assert {row["job_id"] for row in rows} == {job_id}


def output(seen):
    return "".join(data["text"] for name, data, _ in seen if name == "log")


def test_all_output_comes_before_the_end(api):
    job_id = api.submit("for i in 1 2 3 4; do echo é $i; sleep 0.2; done; printf end")["job_id"]
    with api.events(f"log:{job_id}.0@1.0") as events:
        seen = take(events, is_over(job_id))
    assert output(seen) == "é 1\né 2\né 3\né 4\nend"
    last = [data for name, data, _ in seen if name == "log"][-1]
    text = {"text": "end"} if last["text"] == "end" else {"text": last["text"]}
    assert last == {"job_id": job_id, "rank": 0, "attempt": 1, "offset": 23} | text


def test_a_character_that_comes_in_two_pieces_is_one(api):
    job_id = api.submit(r"printf 'a\303'; sleep 0.7; printf '\251b\377'")["job_id"]
    with api.events(f"log:{job_id}.0@1.0") as events:
        seen = take(events, is_over(job_id))
    assert output(seen) == "aéb�"


def test_output_goes_on_with_the_next_attempt(api):
    job_id = api.submit("echo $TRAINYARD_ATTEMPT; [ $TRAINYARD_ATTEMPT = 3 ]", retries=2)["job_id"]
    with api.events(f"log:{job_id}.0@1.0") as events:
        seen = take(events, is_over(job_id))
    logs = [data for name, data, _ in seen if name == "log"]
    assert [(data["attempt"], data["text"]) for data in logs] == [(1, "1\n"), (2, "2\n"), (3, "3\n")]


def test_output_begins_at_the_present_end_unless_a_place_is_given(api):
    job_id = api.submit(
        "echo old; while [ ! -e go ]; do sleep 0.05; done; echo new", workdir=str(api_root(api))
    )["job_id"]
    log = f"/jobs/{job_id}/logs"
    while api.get(log).content != b"old\n":
        time.sleep(0.05)
    with api.events(f"log:{job_id}.0") as events:
        next(events)
        (api_root(api) / "go").touch()
        seen = take(events, is_over(job_id))
    assert output(seen) == "new\n"
    with api.events(f"log:{job_id}.0@1.2") as events:  # of a job that is over
        seen = take(events, lambda name, *_: name == "log")
    assert output(seen) == "d\nnew\n"


def api_root(api):
    return api.live.backend.layout.root


def test_a_quiet_stream_says_that_it_is_there(api):
    with api.events("job:1") as events:
        take(events, lambda name, *_: name == "")


def test_a_stream_of_nobody_is_refused(api):
    assert told(api.get("/events", topics="job:99999"), 404)[0].startswith("there is no job 99999")
    assert told(api.get("/events", topics="jobs"), 422)[1] == "topics"


def test_a_reader_that_goes_away_leaves_nothing(api):
    published = api.desk.controller.published
    before = len(published._listeners)
    with api.events() as events:
        next(events)
        assert len(published._listeners) == before + 1
    api.wait(api.submit()["job_id"])
    end = time.monotonic() + PATIENCE_S
    while len(published._listeners) > before and time.monotonic() < end:
        time.sleep(0.05)
    assert len(published._listeners) == before


def test_the_last_event_is_goodbye(tmp_path):
    with served(tmp_path) as api, api.events() as events:
        next(events)
        api.desk.last_words = {"go_on": 2}
        api.loop.call_soon_threadsafe(api.desk.closing.set)
        assert [(name, data) for name, data, _ in events if name == "bye"] == [("bye", {"go_on": 2})]
