"""What readers see: the latest of everything, and what changed since they last looked."""

from trainyard.live.published import KEPT, Published


def view(job_id, state="waiting"):
    return {"job_id": job_id, "state": state}


def shown(*jobs):
    published = Published(epoch=3)
    for job in jobs:
        published.update({job["job_id"]: job}, [], {"now_s": 1.0})
    return published


def test_readers_get_what_changed_after_what_they_know():
    published = shown(view("a"), view("b"), view("a", "running"))
    assert published.version == 3
    assert [delta["jobs"] for delta in published.after(1)] == [[view("b")], [view("a", "running")]]
    assert published.after(3) == []
    assert sorted(job["state"] for job in published.jobs()) == ["running", "waiting"]


def test_what_does_not_change_is_no_news():
    published = shown(view("a"), view("a"))
    assert published.version == 1
    published.update({}, [{"node": "n0"}], {})
    assert published.after(1)[0]["nodes"] == [{"node": "n0"}]


def test_who_was_away_too_long_or_comes_from_another_life_starts_anew():
    published = shown(*(view(f"j{i}") for i in range(KEPT + 5)))
    assert published.after(4) is None
    assert len(published.after(5)) == KEPT
    assert published.after(published.version + 1) is None


def test_listeners_are_told_until_they_leave():
    published, heard = Published(1), []
    leave = published.listen(lambda: heard.append(published.version))
    published.update({"a": view("a")}, [], {})
    leave()
    published.update({"b": view("b")}, [], {})
    assert heard == [1]


def test_a_job_that_is_forgotten_is_not_shown():
    published = shown(view("a"))
    published.forget("a")
    assert published.job("a") is None
    assert published.jobs() == []
