"""The application: all paths below /api/v1, and errors that read the same everywhere."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from trainyard._version import __version__
from trainyard.errors import InputError
from trainyard.server.desk import Desk
from trainyard.server.faults import Refusal, error_object
from trainyard.server.gate import Gate
from trainyard.server.reply import Reply
from trainyard.server.routes import cluster, events, jobs, logs

BASE = "/api/v1"


def make_app(desk: Desk, token: str, names: Iterable[str] = ()) -> ASGIApp:
    """Return the API of a controller; `names` are those of this server, beside localhost and addresses."""
    app = FastAPI(
        title="trainyard",
        version=__version__,
        openapi_url=f"{BASE}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    for routes in (jobs.routes, logs.routes, cluster.routes, events.routes):
        app.include_router(routes(desk), prefix=BASE)
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(InputError, _wrong)
    app.add_exception_handler(RequestValidationError, _wrong_query)
    app.add_exception_handler(HTTPException, _no_path)
    app.add_exception_handler(Exception, _broken)
    most = desk.controller.settings.body_bytes
    return Gate(app, token, {"localhost", *names}, most, desk.note)


def _reply(status: int, message: str, field: str | None = None) -> Reply:
    return Reply(error_object(status, message, field), status)


def _refusal(_: Request, error: Exception) -> Reply:
    assert isinstance(error, Refusal)
    return _reply(error.status, str(error), error.field)


def _wrong(_: Request, error: Exception) -> Reply:
    return _reply(422, str(error), getattr(error, "field", None))


def _wrong_query(_: Request, error: Exception) -> Reply:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = str(first["loc"][-1])
    return _reply(422, f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}", field)


def _no_path(request: Request, error: Exception) -> Reply:
    assert isinstance(error, HTTPException)
    path = request.url.path[:80]
    if error.status_code == 404:
        what = f"version {__version__} knows no {path}; is this command of another version?"
        return _reply(404, what)
    return _reply(error.status_code, f"{request.method} {path}: {error.detail}")


def _broken(request: Request, error: Exception) -> Reply:
    print(f"trainyard: {request.method} {request.url.path} failed:", file=sys.stderr)
    traceback.print_exception(error)
    return _reply(500, f"the controller failed: {type(error).__name__}: {error}; its log on stderr says more")
