"""Ports on which the processes of a run find each other."""

from __future__ import annotations

import socket
from itertools import count
from random import SystemRandom
from threading import Lock

FIRST, LAST = 20_000, 32_000  # below those that the kernel hands out by itself
_lock = Lock()
_next = count(SystemRandom().randrange(FIRST, LAST))


def free_ports(wanted: int) -> list[int]:
    """Return ports that nobody listens on, none of which was returned lately."""
    found: list[int] = []
    with _lock:
        for number in _next:
            port = FIRST + (number - FIRST) % (LAST - FIRST)
            if _is_free(port):
                found.append(port)
            if len(found) >= wanted:
                break
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
