"""Which controller a command talks to: a flag, a variable, or the data directory of this user."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trainyard.errors import ControllerError, InputError, UnreachableError
from trainyard.server.place import SERVER_FILE, data_directory

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Found:
    """The address of a controller, its token, and who says so."""

    url: str
    token: str
    said_by: str  # --url, TRAINYARD_URL or a server.json
    pid: int | None = None  # what a server.json knows
    host: str = ""

    def silence(self, why: str) -> str:
        """Say that nobody answers at this address, and what would help."""
        if self.pid is None:
            return f"no controller answers at {self.url} (from {self.said_by}): {why}"
        if self.host == socket.gethostname() and not _alive(self.pid):
            state, remedy = "which is gone", "start one: trainyard up"
        else:
            state, remedy = why, "trainyard status tries again"
        origin = f"{SERVER_FILE} of pid {self.pid} on {self.host}"
        return f"no controller answers at {self.url} (from {origin}, {state}); {remedy}"


def find(url: str | None, data: str | None) -> Found:
    """Return the controller that the flags and variables name."""
    if url is not None and data is not None:
        raise InputError("--url and --data both name a controller; give one of them")
    if url is not None:
        return _by_url(url, "--url")
    if data is None and (told := os.environ.get("TRAINYARD_URL")):
        return _by_url(told, "TRAINYARD_URL")
    return _by_data(data_directory(data))


def _by_url(url: str, said_by: str) -> Found:
    if not _is_address(url):
        raise InputError(f"{said_by} '{url}': give an address such as http://127.0.0.1:7410")
    token = os.environ.get("TRAINYARD_TOKEN")
    if not token:
        raise InputError(
            f"{said_by} needs TRAINYARD_TOKEN, which is not set; "
            f"{SERVER_FILE} in the controller's data directory has it"
        )
    if not token.isascii() or not token.isprintable():
        raise InputError("TRAINYARD_TOKEN has characters that no token has; copy it whole, in one line")
    return Found(url.rstrip("/"), token, said_by)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port, or of brackets
        return False


def _by_data(folder: Path) -> Found:
    told = _read(folder / SERVER_FILE)
    try:
        found = Found(told["url"], told["token"], str(folder / SERVER_FILE), int(told["pid"]), told["host"])
    except (KeyError, TypeError, ValueError):
        raise ControllerError(
            f"{folder / SERVER_FILE} is not what a controller writes", "unavailable"
        ) from None
    _check_host(found)
    return found


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise UnreachableError(f"no controller runs with {path.parent}; start one: trainyard up") from None
    except OSError as error:
        raise ControllerError(f"{path} cannot be read: {error.strerror}", "unavailable") from None
    except ValueError:
        return None


def _check_host(found: Found) -> None:
    """Say what to do if the controller listens on another machine, to that machine alone."""
    at = urlsplit(found.url)
    if found.host == socket.gethostname() or at.hostname not in LOOPBACK:
        return
    raise ControllerError(
        f"the controller runs on {found.host} and listens only there; from here: "
        f"ssh -N -L {at.port}:{at.netloc} {found.host}, then export TRAINYARD_URL={found.url} "
        f"TRAINYARD_TOKEN=... (it is in {found.said_by})",
        "elsewhere",
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
