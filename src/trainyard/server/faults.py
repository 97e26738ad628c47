"""What went wrong with a request, as everybody reads it: a code, one line, and the field if it is one."""

from __future__ import annotations

from typing import Any

from trainyard.errors import InputError, TrainyardError

CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "not_allowed",
    409: "conflict",
    413: "too_large",
    421: "unknown_host",
    422: "invalid",
    500: "broken",
    503: "unavailable",
}


class FieldError(InputError):
    """A field of a request is wrong."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(f"{field}: {what}")
        self.field = field


class Refusal(TrainyardError):  # noqa: N818 - a request is refused, nothing is broken
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


def error_object(status: int, message: str, field: str | None = None) -> dict[str, Any]:
    """Return the body of an answer that is an error."""
    return {"error": {"code": CODES.get(status, "error"), "message": message, "field": field}}
