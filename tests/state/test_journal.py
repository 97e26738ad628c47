"""The journal of changes: readers at different versions, and what is forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainyard.state import journal as module
from trainyard.state.journal import KEPT, Journal

FEW = 8


def test_a_reader_gets_what_came_after_it_read():
    journal = Journal()
    assert (journal.version, journal.since(0)) == (0, [])
    journal.entries += "ab"
    early = journal.version
    journal.entries += "ca"  # in order, and perhaps repeatedly
    assert (early, journal.version) == (2, 4)
    assert journal.since(0) == ["a", "b", "c", "a"]
    assert journal.since(early) == ["c", "a"]
    assert journal.since(journal.version) == []


def test_who_has_never_read_starts_anew():
    assert Journal().since(-1) is None


def test_a_short_journal_is_kept_whole():
    journal = Journal()
    journal.entries += range(KEPT)
    journal.trim()
    assert journal.since(0) == list(range(KEPT))


def test_of_a_long_journal_the_latest_half_is_kept():
    journal = Journal()
    entries = journal.entries
    entries += range(KEPT + 1)
    journal.trim()
    kept = KEPT // 2
    assert journal.entries is entries  # writers hold on to it
    assert (len(entries), journal.version) == (kept, KEPT + 1)
    assert journal.since(KEPT + 1 - kept) == list(range(KEPT + 1 - kept, KEPT + 1))
    assert journal.since(KEPT - kept) is None
    assert journal.since(0) is None
    assert journal.since(journal.version) == []


@settings(max_examples=50)
@given(st.lists(st.one_of(st.integers(1, 5), st.just("trim"), st.just("read")), max_size=60))
def test_readers_miss_nothing_or_are_told_so(steps):
    """Against a log that is never trimmed, for readers that stopped at any version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT", FEW)
        journal, log, versions = Journal(), [], {0}
        for step in steps:
            if step == "trim":
                journal.trim()
                assert len(journal.entries) <= FEW
            elif step == "read":
                versions.add(journal.version)
            else:
                new = range(len(log), len(log) + step)
                log += new
                journal.entries += new
            assert journal.version == len(log)
            for version in versions:
                missed = journal.since(version)
                assert missed == log[version:] if missed is not None else len(log) - version > FEW // 2
