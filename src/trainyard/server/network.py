"""Where the API listens."""

from __future__ import annotations

import errno
import ipaddress
import socket

from trainyard.errors import InputError, TrainyardError

DEFAULT = "127.0.0.1:7410"
LAST_PORT = 65535


class InUseError(TrainyardError):
    """Another process listens there."""


def address_of(given: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, colon, port = given.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > LAST_PORT:
        raise InputError(f"--listen {given}: give HOST:PORT, such as {DEFAULT} (port 0: any that is free)")
    return host, int(port)


def bind(host: str, port: int) -> socket.socket:
    """Take the address, so that nobody else does; nobody is answered yet."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InputError(f"--listen {host}:{port}: there is no host of this name") from None
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(address)
        taken.listen(128)  # else two could bind to it
    except OSError as error:
        taken.close()
        text = f"--listen {host}:{port}: {error.strerror}; give another address"
        raise (InUseError(text) if error.errno == errno.EADDRINUSE else InputError(text)) from None
    return taken


def url_of(taken: socket.socket) -> str:
    """Return where the API is, from this machine."""
    host, port = taken.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(taken: socket.socket) -> bool:
    """Whether only this machine reaches it."""
    return ipaddress.ip_address(taken.getsockname()[0]).is_loopback


def is_known(header: str, names: frozenset[str]) -> bool:
    """Whether a Host header names this server: an address, or one of the names; a web page has another."""
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() else header
    name = name.removeprefix("[").removesuffix("]").lower()
    if name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
