"""Options that several commands share: written down once, as a function that reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Any

Command = Callable[..., None]


def shares(name: str, reader: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command the options of `reader` in place of its parameter `name`: a function that reads them."""

    def decorate(command: Command) -> Command:
        shared = signature(reader, eval_str=True).parameters

        @wraps(command)
        def call(**given: Any) -> None:
            command(**{name: partial(reader, **{each: given.pop(each) for each in shared})}, **given)

        own = signature(command, eval_str=True).parameters.values()
        spread = [p for each in own for p in (shared.values() if each.name == name else (each,))]
        both = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in spread]
        call.__signature__ = Signature(both)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
        return call

    return decorate
