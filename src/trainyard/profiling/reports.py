"""The one line that a script prints to say how fast it is: `123.4 samples/s` or `samples/s: 123.4`."""

from __future__ import annotations

import re

EXAMPLE = "123.4 samples/s"
NUMBER = r"(\d[\d,_]*(?:\.\d*)?(?:e[-+]?\d+)?)"
UNIT = r"samples?\s*(?:/|per)\s*s(?:ec(?:onds?)?)?\b"
# The label first: in "step 10 samples/s: 123.4" the number before the unit is another one.
FORMS = (
    re.compile(rf"{UNIT}\s*[:=]\s*{NUMBER}", re.IGNORECASE),
    re.compile(rf"{NUMBER}\s*{UNIT}", re.IGNORECASE),
)


def speed_in(line: str) -> float | None:
    """Return the samples per second that a line reports, if it does."""
    for form in FORMS:
        if found := form.search(line):
            speed = float(found[1].replace(",", "").replace("_", ""))
            return speed if 0 < speed < float("inf") else None
    return None
