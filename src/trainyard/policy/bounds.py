"""Bounds of the numbers that stages take: within them a decision ends soon and loses no digits."""

from __future__ import annotations

from trainyard.errors import InputError

MOST_AHEAD = 64  # tasks that are looked at together: a decision tries all their pairs


def within(name: str, value: float, least: float, most: float) -> None:
    """Refuse the value of a parameter that is out of its bounds."""
    if not least <= value <= most:
        size = "small" if value < least else "large"
        raise InputError(f"{name}={value:g} is too {size}; give a number from {least:g} to {most:g}")
