"""Times as people write them, in the local time zone."""

from __future__ import annotations

import time

MINUTE, HOUR, DAY = 60, 3600, 86400


def clock(time_s: float, now_s: float, seconds: bool = False) -> str:
    """Return when something was or will be; with the date unless it is today."""
    then, today = time.localtime(time_s), time.localtime(now_s)
    form = "%H:%M:%S" if seconds else "%H:%M"
    return time.strftime(form if then[:3] == today[:3] else f"%Y-%m-%d {form}", then)


def short(seconds: float) -> str:
    """Return a time for a narrow column: 42s, 40m, 1:12h, 3d."""
    whole = max(int(seconds), 0)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m"
    return f"{whole // HOUR}:{whole % HOUR // MINUTE:02d}h" if whole < 2 * DAY else f"{whole // DAY}d"


def long(seconds: float) -> str:
    """Return a time for a sentence: 42 s, 40 min, 1.2 h, 3 d."""
    if seconds < 2 * MINUTE:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.3g} h" if seconds < 2 * DAY else f"{seconds / DAY:.3g} d"
