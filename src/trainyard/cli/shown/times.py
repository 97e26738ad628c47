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
    if seconds < MINUTE:
        return f"{max(seconds, 0):.0f}s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f}m"
    if seconds < 2 * DAY:
        minutes = int(seconds // MINUTE)
        return f"{minutes // 60}:{minutes % 60:02d}h"
    return f"{seconds / DAY:.0f}d"


def long(seconds: float) -> str:
    """Return a time for a sentence: 42 s, 40 min, 1.2 h, 3 d."""
    if seconds < 2 * MINUTE:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.3g} h" if seconds < 2 * DAY else f"{seconds / DAY:.3g} d"
