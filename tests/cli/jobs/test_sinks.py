"""Where the output of a job goes: bytes, ranks before lines, attempts, JSON."""

from __future__ import annotations

import io
import json

import pytest

from trainyard.cli.jobs.run import exit_code
from trainyard.cli.jobs.sinks import Lines, Screen, Whole


class Paper(io.TextIOWrapper):
    """A stream that remembers, and may be a terminal."""

    def __init__(self, terminal=False):
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.isatty = lambda: terminal

    def seen(self):
        return self.buffer.getvalue()


def attempt(number, **nodes):
    return {"attempt": number, "nodes": {node: {"gpus": count} for node, count in nodes.items()}}


def test_bytes_go_through_as_they_come():
    screen = Screen(paper := Paper(), named=False)
    screen.begin(attempt(1, a=1))
    for piece in (b"\xff\x00", b"\x1b[31m", b"no end"):
        screen.add(0, piece)
    assert paper.seen() == b"\xff\x00\x1b[31mno end"
    screen.end()
    assert paper.seen() == b"\xff\x00\x1b[31mno end"


def test_a_terminal_is_spared_and_letters_may_come_in_pieces():
    screen = Screen(paper := Paper(terminal=True), named=False)
    screen.begin(attempt(1, a=1))
    for piece in ("Σ\x1b[3".encode()[:1], "Σ\x1b[3".encode()[1:], b"1mred\x07\n"):
        screen.add(0, piece)
    assert paper.seen().decode() == "Σred\n"


def test_every_line_has_its_rank():
    screen = Screen(paper := Paper(), named=True)
    screen.begin(attempt(1, a=2))
    for rank, piece in ((0, b"one\ntw"), (1, b"eins\n"), (0, b"o\nthr"), (1, b"zw")):
        screen.add(rank, piece)
    assert paper.seen() == b"[0] one\n[1] eins\n[0] two\n"
    screen.end()
    assert paper.seen() == b"[0] one\n[1] eins\n[0] two\n[0] thr\n[1] zw\n"


def test_another_attempt_begins_on_a_new_line():
    screen = Screen(paper := Paper(), named=False)
    screen.begin(attempt(1, a=1))
    screen.add(0, b"half")
    screen.end()
    screen.begin(attempt(2, a=2, b=2))
    screen.add(0, b"again\n")
    screen.end()
    screen.begin(attempt(3, b=1))
    assert paper.seen().decode() == (
        "half\n--- attempt 2, 4 GPUs, a,b ---\nagain\n--- attempt 3, 1 GPU, b ---\n"
    )


def test_json_a_line_for_each_piece(capsys):
    lines = Lines("17")
    lines.begin(attempt(2, a=1))
    lines.add(0, b"a\n\xff")
    lines.end()
    assert json.loads(capsys.readouterr().out) == {"job_id": "17", "attempt": 2, "rank": 0, "text": "a\n�"}


def test_json_of_all(capsys):
    whole = Whole("17")
    whole.begin(attempt(1, a=2))
    for rank, piece in ((1, b"x"), (0, "Σ".encode()[:1]), (0, "Σ".encode()[1:])):
        whole.add(rank, piece)
    whole.end()
    assert [(each["rank"], each["text"]) for each in whole.pieces()] == [(0, "Σ"), (1, "x")]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("state", "code", "signal", "ends"),
    [
        ("done", 0, None, 0),
        ("done", None, None, 0),
        ("failed", 7, None, 7),
        ("failed", None, 11, 139),
        ("failed", None, None, 1),
        ("cancelled", 0, None, 1),
        ("cancelled", None, 15, 143),
        ("cancelled", 75, None, 75),
    ],
)
def test_the_exit_code_of_run(state, code, signal, ends):
    assert exit_code({"state": state, "exit_code": code, "exit_signal": signal}) == ends
