"""Output of jobs on a terminal: nothing in it steers the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.cli.shown.plain import Cleaner, one_line, plain

STEERING = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\link \x1b(Bb \x9b2Jz \x07\x08\x7f \u202egnp"
)


def test_colours_titles_and_bells_go_and_words_stay():
    assert plain(STEERING) == "red xlink b 2Jz  gnp"


@pytest.mark.parametrize("kept", ["a\tb\n", "10%\r20%\r\n", "naïve Σ 漢字 🚂"])
def test_what_a_reader_sees_stays(kept):
    assert plain(kept) == kept
    assert Cleaner().clean(kept) == kept


@given(st.text(alphabet="\x1b[]0;31mx\x07\\P\x9b\x00\n", max_size=30))
def test_no_control_character_is_left(text):
    assert {char for char in plain(text) if not char.isprintable()} <= {"\n"}


@pytest.mark.parametrize("cut", range(len(STEERING) + 1))
def test_sequences_may_come_in_two_pieces(cut):
    cleaner = Cleaner()
    assert cleaner.clean(STEERING[:cut]) + cleaner.clean(STEERING[cut:]) == plain(STEERING)


def test_a_lone_escape_does_not_hold_back_output_for_ever():
    cleaner = Cleaner()
    shown = cleaner.clean("\x1b]0;" + "x" * 100)
    assert shown == "]0;" + "x" * 100


def test_a_reason_is_one_line():
    assert one_line("last line:\x1b[31m a\nb\t c ") == "last line: a b c"
