"""What a reader of events asks for."""

from __future__ import annotations

import pytest

from conftest import complaint
from trainyard.server.stream.topics import LogTopic, Topics, read_position, read_topics


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("", Topics(True, frozenset(), ())),
        ("yard", Topics(True, frozenset(), ())),
        ("job:17", Topics(False, frozenset({"17"}), ())),
        ("job:17_0,yard", Topics(True, frozenset({"17_0"}), ())),
        ("log:17.0", Topics(False, frozenset(), (LogTopic("17", 0),))),
        ("log:17.s2@3.99", Topics(False, frozenset(), (LogTopic("17", 2, True, (3, 99)),))),
    ],
)
def test_topics_are_read(text, topics):
    assert read_topics(text) == topics


@pytest.mark.parametrize(
    "text", ["all", "job:", "job:a", "log:1", "log:1.a", "log:1.0@3", "job:1/..", "yard job:1"]
)
def test_what_is_no_topic_is_refused(text):
    assert complaint(read_topics, text) == (
        f"topics: '{text}' is no topic; give yard, job:ID or log:ID.RANK, with commas between them"
    )


def test_too_many_topics_are_refused():
    assert "give at most 100" in complaint(read_topics, ",".join(f"job:{i}" for i in range(101)))


def test_who_asks_for_single_jobs_hears_of_these():
    topics = read_topics("job:1,log:2.0")
    assert [topics.wants(job) for job in "123"] == [True, True, False]
    assert topics.named == {"1", "2"}
    assert read_topics("yard").wants("3")


@pytest.mark.parametrize(
    ("text", "position"),
    [(None, None), ("", None), ("8.17", (8, 17)), ("8", (0, 0)), ("a.b", (0, 0)), ("-1.2", (0, 0))],
)
def test_positions(text, position):
    assert read_position(text) == position
