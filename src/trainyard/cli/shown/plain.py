"""Text of jobs without what would steer a terminal."""

from __future__ import annotations

import re

# Escape sequences whole, so that no colour code is left behind; then every other control character.
SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|[PX^_][^\x1b]*\x1b\\"
    r"|[ -/]*[0-OQ-WYZ\\`-~])"
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
UNFINISHED = re.compile(r"\x1b(?:[\]PX^_][^\x07\x1b]{0,60}\x1b?|\[?[ -?]{0,60})$")


def plain(text: str) -> str:
    """Return output without control characters; line ends, tabs and returns stay."""
    return CONTROL.sub("", SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    """Return text as one line without control characters."""
    return " ".join(plain(text).split())


class Cleaner:
    """Removes control characters from output that comes in pieces."""

    def __init__(self) -> None:
        self._kept = ""  # what may be the beginning of an escape sequence

    def clean(self, text: str) -> str:
        """Return the next piece, cleaned."""
        text = SEQUENCE.sub("", self._kept + text)
        cut = UNFINISHED.search(text)
        self._kept = "" if cut is None else cut[0]
        return CONTROL.sub("", text if cut is None else text[: cut.start()])
