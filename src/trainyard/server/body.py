"""Bodies of requests: one JSON object, or nothing."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from starlette.requests import Request

from trainyard.errors import did_you_mean
from trainyard.files.checking import shown
from trainyard.server.faults import FieldError, Refusal


async def read_object(request: Request, known: Collection[str] | None = None) -> dict[str, Any]:
    """Return the object of a body; only `known` fields may stand there, if they are given."""
    data = await request.body()
    if not data.strip():
        return {}
    try:
        content = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise Refusal(422, f"the body is not valid JSON: {what}") from None
    if not isinstance(content, dict):
        raise Refusal(422, f"the body is {shown(content)}; it must be a JSON object")
    for key in content if known is not None else ():
        if key not in (known or ()):
            raise FieldError(key[:40], f"there is no such field{did_you_mean(key[:40], known or ())}")
    return content


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")
