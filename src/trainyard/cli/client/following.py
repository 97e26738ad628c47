"""Looking again whenever the controller says that something changed, over its restarts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from trainyard.cli.client.link import QUIET_S, Link
from trainyard.errors import UnreachableError

PATIENCE_S = 120.0  # without a controller
AGAIN_S = 0.25  # between two tries
MOST_TOPICS = 50  # of one stream; those who want more hear of everything


def follow(link: Link, topics: Sequence[str], look: Callable[[], bool], until_s: float | None = None) -> bool:
    """Call `look` now and at every event until it returns True; False if the time is over (monotonic)."""
    about = ",".join(topics) if len(topics) <= MOST_TOPICS else "yard"
    patience = _Patience(link)
    while (left := _left(until_s)) > 0:
        try:
            with link.events(about, min(left, QUIET_S)) as events:
                if look():
                    return True
                patience.fresh()
                for name, _ in events:
                    if name != "story" and look():  # what a story tells has a delta, too
                        return True
        except UnreachableError as error:
            if _left(until_s) > 0:
                patience.lost(error)
    return False


def _left(until_s: float | None) -> float:
    return QUIET_S if until_s is None else until_s - time.monotonic()


class _Patience:
    """Waits for a controller to come back, for a while; says so once."""

    def __init__(self, link: Link) -> None:
        self._link, self._since, self._said = link, 0.0, False

    def fresh(self) -> None:
        """It answers."""
        self._since = 0.0

    def lost(self, error: UnreachableError) -> None:
        """It does not answer: wait a moment, or give up."""
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since > PATIENCE_S:
            raise error
        if not self._said:
            self._said = True
            print(f"{error}; trying again for {PATIENCE_S:g} s", file=sys.stderr)
        time.sleep(AGAIN_S)
        try:
            self._link.lost()
        except UnreachableError:
            return
