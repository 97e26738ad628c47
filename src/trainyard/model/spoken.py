"""Times as people read them.

The core knows no time zone, and what it says must be the same whenever a log is replayed: it writes moments
as numbers (`moment`). Whoever shows a text to people spells them out (`spelled`).
"""

from __future__ import annotations

import re
import time

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MOMENT = re.compile(r"<(\d{1,12}) s>")


def span(seconds: float) -> str:
    """Write a length of time in the unit that suits it: 42 s, 7.5 min, 12 h, 3 d."""
    for most, unit, name in ((2 * MINUTE, 1.0, "s"), (2 * HOUR, MINUTE, "min"), (2 * DAY, HOUR, "h")):
        if seconds < most:
            return f"{_round(seconds / unit):g} {name}"
    return f"{_round(seconds / DAY):g} d"


def _round(number: float) -> float:
    return round(number, 0 if number >= 10 else 1)


def moment(time_s: float) -> str:
    """Write a moment (Unix time) into a text."""
    return f"<{time_s:.0f} s>"


def spelled(text: str, now_s: float) -> str:
    """Return a text with its moments as clocks show them here; those of other days with the day."""
    if "<" not in text:
        return text
    return MOMENT.sub(lambda found: clock(float(found[1]), now_s), text)


def clock(time_s: float, now_s: float) -> str:
    """Return a moment as a clock shows it here; of another day with the day."""
    then, now = time.localtime(time_s), time.localtime(now_s)
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%d %b %H:%M", then)
