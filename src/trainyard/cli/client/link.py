"""Requests to a controller and its answers, by Python's own HTTP client: httpx takes 0.2 s to import."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from trainyard.cli.client.finding import Found
from trainyard.cli.client.versions import check_version, stamped
from trainyard.errors import ControllerError, RefusedError, UnreachableError

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

ROOT = "/api/v1"
ANSWER_S = 60.0  # a controller may take so long for an answer
QUIET_S = 45.0  # a stream of events says something every 15 s
USERS_FAULT = (400, 404, 413, 422)

Job = dict[str, Any]


class Link:
    """A connection to a controller; `find` finds it, again when it is lost: a new one may be elsewhere."""

    def __init__(self, find: Callable[[], Found]) -> None:
        self._find = find
        self._found = find()
        self._noted = False

    def get(self, path: str, **query: Any) -> Any:
        """Ask for something."""
        return json.loads(self._ask("GET", path, query)[0])

    def post(self, path: str, body: Mapping[str, Any] | None = None, again: bool = False) -> Any:
        """Have something done; with `again` it is asked a second time if the connection breaks."""
        return json.loads(self._ask("POST", path, {}, body or {}, again)[0])

    def read(self, path: str, **query: Any) -> tuple[bytes, Mapping[str, str]]:
        """Ask for bytes; returns them and what the answer's header says."""
        return self._ask("GET", path, query)

    def job(self, name: str) -> Job:
        """Return the job that an argument means."""
        found: Job = self.get("/jobs/find", name=name)["jobs"][0]
        return found

    @contextmanager
    def events(self, topics: str, quiet_s: float = QUIET_S) -> Iterator[Iterator[tuple[str, str]]]:
        """Open a stream of events; yields their names and what they say, and a comment as ''."""
        with closing(_connect(self._found, quiet_s)) as connection:
            with self._broken():
                connection.request("GET", _target("/events", {"topics": topics}), headers=self._headers())
                answer = connection.getresponse()
                told = b"" if answer.status == 200 else answer.read()
            if answer.status != 200:
                self._refuse(answer.status, told)
            with closing(answer):
                yield self._heard(answer)

    def lost(self) -> None:
        """Look for the controller again."""
        self._found = self._find()

    # -- one request ------------------------------------------------------------------------------

    def _ask(
        self, verb: str, path: str, query: Mapping[str, Any], body: Any = None, again: bool = True
    ) -> tuple[bytes, Mapping[str, str]]:
        try:
            return self._once(verb, path, query, body)
        except UnreachableError:
            if not again:
                raise
        self.lost()
        return self._once(verb, path, query, body)

    def _once(
        self, verb: str, path: str, query: Mapping[str, Any], body: Any
    ) -> tuple[bytes, Mapping[str, str]]:
        sent = None if body is None else json.dumps(body).encode()
        with self._broken(), closing(_connect(self._found, ANSWER_S)) as connection:
            connection.request(verb, _target(path, query), sent, self._headers())
            answer = connection.getresponse()
            content, header = answer.read(), dict(answer.getheaders())
        check_version(_header(header, "Trainyard-Version"))
        self._note(_header(header, "Trainyard-Note"))
        if answer.status >= 300:
            self._refuse(answer.status, content, _header(header, "Trainyard-Version"))
        return content, header

    def _headers(self) -> dict[str, str]:
        token = f"Bearer {self._found.token}"
        return {"Authorization": token, "Content-Type": "application/json", "Connection": "close"}

    @contextmanager
    def _broken(self) -> Iterator[None]:
        """Say in plain words that nobody answers."""
        from http.client import HTTPException

        try:
            yield
        except TimeoutError:
            raise UnreachableError(self._found.silence(f"no answer in {ANSWER_S:g} s")) from None
        except (OSError, HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise UnreachableError(self._found.silence(why)) from None

    def _heard(self, answer: HTTPResponse) -> Iterator[tuple[str, str]]:
        """Yield the name and the data of each event, '' for a comment; raises when the stream breaks."""
        name = data = ""
        while True:
            with self._broken():
                line = answer.readline()
            if not line:
                raise UnreachableError(self._found.silence("it ended the stream"))
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text.startswith("event:"):
                name = text.removeprefix("event:").strip()
            elif text.startswith(":"):
                yield "", ""
            elif text.startswith("data:"):
                data = text.removeprefix("data:").strip()
            elif not text and name:
                yield name, data
                name = data = ""

    def _note(self, text: str) -> None:
        """Tell once what whoever reads the answer should know."""
        if text and not self._noted:
            self._noted = True
            print(text, file=sys.stderr)

    def _refuse(self, status: int, content: bytes, version: str = "") -> None:
        """Raise what an answer says went wrong."""
        told = _error(content)
        if told is None:
            raise ControllerError(
                stamped(f"{self._found.url} answers {status}, not as a controller does", version), "error"
            )
        code, message = str(told.get("code", "error")), stamped(str(told.get("message", "")), version)
        if status == 401:
            raise ControllerError(self._wrong_token(), code)
        if status == 503:
            raise BusyError(message)
        if status in USERS_FAULT:
            raise RefusedError(message, code, told.get("field"))
        raise ControllerError(message, code)

    def _wrong_token(self) -> str:
        source = "TRAINYARD_TOKEN" if self._found.pid is None else self._found.said_by
        return (
            f"the controller at {self._found.url} does not take the token of {source}; "
            "server.json in its data directory has the right one"
        )


class BusyError(UnreachableError):
    """A controller answers that it cannot answer now."""


def _connect(found: Found, timeout_s: float) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection

    parts = urlsplit(found.url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout_s)


def _target(path: str, query: Mapping[str, Any]) -> str:
    known = {name: value for name, value in query.items() if value is not None}
    return ROOT + quote(path) + (f"?{urlencode(known)}" if known else "")


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name.lower()), "")


def _error(content: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(content)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return told if isinstance(told, dict) else None
