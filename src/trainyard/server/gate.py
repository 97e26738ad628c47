"""Who may ask: the right host, the right token, a body that is not too large; before anything else."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainyard._version import __version__
from trainyard.server.answers import to_bytes
from trainyard.server.faults import Refusal, error_object
from trainyard.server.network import is_known

MOST_DIGITS = 12  # of a length that is worth reading
VERSION = (b"trainyard-version", __version__.encode())
KEEP_OUT = (b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")
NO_TOKEN = "give the token of server.json (or $TRAINYARD_TOKEN) as 'Authorization: Bearer TOKEN'"


class Gate:
    """Stands before the application."""

    def __init__(
        self, app: ASGIApp, token: str, names: Iterable[str], most_bytes: int, note: Callable[[], str]
    ) -> None:
        """`names` are this server's own, beside addresses; `note` says what readers should know now."""
        self._app, self._token, self._most, self._note = app, token.encode(), most_bytes, note
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        refused = self._refused(headers)
        if refused is not None:
            await _answer(send, *refused)
            return

        async def sends(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], VERSION, *KEEP_OUT, *_noted(self._note())]
            await send(message)

        await self._app(scope, self._counted(receive), sends)

    def _refused(self, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Say why a request is not let through; None if it is."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not is_known(host, self._names):
            return 421, f"'{host}' is no name of this server; ask it as 127.0.0.1 or localhost"
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not secrets.compare_digest(token.strip(), self._token):
            return 401, NO_TOKEN
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and (len(length) > MOST_DIGITS or int(length) > self._most):
            return 413, self._too_large()
        return None

    def _too_large(self) -> str:
        return f"the body is larger than {self._most // 1000:,} kB; large data belong into files"

    def _counted(self, receive: Receive) -> Receive:
        """Stop reading a body that is too large, whatever its header said."""
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most:
                raise Refusal(413, self._too_large())
            return message

        return counted


def _noted(note: str) -> list[tuple[bytes, bytes]]:
    """The header that commands print: one line, of characters that a header may have."""
    line = "".join(char if char.isprintable() else " " for char in note)
    return [(b"trainyard-note", line.encode("ascii", "replace"))] if note else []


async def _answer(send: Send, status: int, message: str) -> None:
    body = to_bytes(error_object(status, message))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, VERSION, *KEEP_OUT]})
    await send({"type": "http.response.body", "body": body})
