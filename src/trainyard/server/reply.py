"""Answers."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from trainyard.server.answers import to_bytes


class Reply(Response):
    """An answer in strict JSON."""

    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200) -> None:
        super().__init__(to_bytes(content), status)
