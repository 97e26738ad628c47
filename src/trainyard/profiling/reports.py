"""The one line that a script prints to say how fast it is: `123.4 samples/s` or `samples/s: 123.4`."""

from __future__ import annotations

import re

from trainyard.profiling.samples import LEAST_SPEED, MOST_SPEED

EXAMPLE = "123.4 samples/s"
COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
QUOTES = str.maketrans("", "", "'\"`")
PLAIN = re.compile(r"\+?(?:\d+|\d{1,3}(?:,\d{3})+|\d{1,3}(?:_\d{3})+)?(?:\.\d*)?(?:[eE][-+]?\d+)?")
TIMES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}
# Also what is no speed is taken as the number that it stands for: the next one in the line is another.
NUMBER = r"(?<![\w.,])([-+]?(?:[\d.,_]*\d[\d.,_]*(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?)))"
UNIT = r"(?i:samples?[\s_]*(?:/|per)[\s_]*s(?:ec(?:ond)?s?)?)(?!\w)"
AFTER = rf"{NUMBER}(?:\s?([kKM]))?(?!\w)"
# The label first: in "step 10 samples/s: 123.4" the number before the unit is another one.
FORMS = (
    re.compile(rf"{UNIT}\s*[:=]\s*{AFTER}"),
    re.compile(rf"\b(?i:epoch|step|iter(?:ation)?|batch)\s+\d+\s+{UNIT}\s+{AFTER}"),
    re.compile(rf"{NUMBER}(?<!,)\s*([kKM])?\s*{UNIT}"),
    re.compile(rf"{UNIT}\s+{AFTER}"),
)


def speed_in(line: str) -> float | None:
    """Return the samples per second that a line reports, if it does."""
    plain = COLOURS.sub("", line).translate(QUOTES)
    for form in FORMS:
        if found := form.search(plain):
            return _speed(found[1].rstrip(".,"), TIMES[found[2] or ""])
    return None


def _speed(text: str, times: float) -> float | None:
    """Return a number that can be a speed; not one whose comma may be a decimal point."""
    if not PLAIN.fullmatch(text):
        return None
    speed = float(text.replace(",", "").replace("_", "")) * times
    return speed if LEAST_SPEED <= speed <= MOST_SPEED else None
