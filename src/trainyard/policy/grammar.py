"""The policy grammar: stage names joined by `+`, parameters in brackets."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from trainyard.errors import InputError, did_you_mean
from trainyard.policy.policy import Policy
from trainyard.policy.registry import DEFAULTS, ENTRIES, PRESETS, STAGES, Entry, Stage
from trainyard.policy.types.joint import Joint

TERM = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:\(([^()]*)\))?\s*")


def split_outside_brackets(text: str, separator: str) -> list[str]:
    """Split at a separator, but not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
        if depth < 0:
            raise InputError(f"policy '{text}': a ')' has no '('; add the one or leave out the other")
    if depth:
        raise InputError(f"policy '{text}': a '(' is not closed; add ')'")
    return [*parts, text[start:]]


def parse_policy(text: str) -> Policy:
    """Build a policy from its name, such as `las(queues=2,threshold_gpu_s=3600)+pack`."""
    stages: dict[str, Any] = {}
    named: dict[str, str] = {}
    for name, given in _terms(text):
        entry = ENTRIES[name]
        made = _make(entry, given, text)
        for stage in entry.stages:
            if stage in stages:
                both = f"'{named[stage]}' and '{name}' both fill the {stage} stage"
                raise InputError(f"policy '{text}': {both}; name at most one")
            stages[stage], named[stage] = made, name
    for stage in STAGES:
        if stage not in stages:
            stages[stage] = ENTRIES[_default(stage, stages.values())].make()
    return Policy(text.strip(), **stages)


def _default(stage: Stage, named: Iterable[Any]) -> str:
    """Name of a stage that is not given: the usual one; joint stages bring their own order."""
    own = [made.order for made in named if isinstance(made, Joint)] if stage == "order" else []
    return own[0] if own else DEFAULTS[stage]


def parse_policies(text: str) -> list[Policy]:
    """Build several policies from a comma-separated list."""
    policies = [parse_policy(part) for part in split_outside_brackets(text, ",")]
    names = [p.name for p in policies]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"policy '{name}' is listed twice; name each policy once")
    return policies


def entries_of(text: str) -> dict[str, Entry]:
    """Return the entry of each term of a policy's name; a preset is written out, easy as fifo(fill=easy)."""
    return {f"{name}({given})" if given else name: ENTRIES[name] for name, given in _terms(text)}


def _terms(text: str) -> list[tuple[str, str]]:
    terms: list[tuple[str, str]] = []
    for part in split_outside_brackets(text, "+"):
        found = TERM.fullmatch(part)
        if found is None:
            raise InputError(
                f"policy '{text}': '{part.strip()}' is not a stage; write name or name(parameter=value)"
            )
        name, given = found[1].lower(), found[2] or ""
        if name in PRESETS:
            if given:
                raise InputError(
                    f"policy '{text}': preset '{name}' takes no parameters; it stands for {PRESETS[name]}"
                )
            terms += _terms(PRESETS[name])
        elif name in ENTRIES:
            terms.append((name, given))
        else:
            raise InputError(
                f"policy '{text}': unknown stage '{name}'{did_you_mean(name, [*ENTRIES, *PRESETS])}"
            )
    return terms


def parameters(entry: Entry) -> dict[str, Any]:
    """Return the parameters of a stage and their types."""
    if entry.make.__init__ is object.__init__:
        return {}
    hints = get_type_hints(entry.make.__init__)
    return {name: hints[name] for name in inspect.signature(entry.make.__init__).parameters if name != "self"}


def _make(entry: Entry, given: str, text: str) -> Any:
    known = parameters(entry)
    values: dict[str, Any] = {}
    for part in given.split(",") if given.strip() else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        where = f"policy '{text}', stage {entry.name}"
        if not equals or not value:
            raise InputError(f"{where}: '{part.strip()}' is not a parameter; write name=value")
        if key not in known:
            takes = did_you_mean(key, known) if known else "; it takes none"
            raise InputError(f"{where}: unknown parameter '{key}'{takes}")
        if key in values:
            raise InputError(f"{where}: parameter '{key}' is given twice; give it once")
        values[key] = _convert(value, known[key], f"{where}, parameter {key}")
    try:
        return entry.make(**values)
    except InputError as error:
        raise InputError(f"policy '{text}', stage {entry.name}: {error}") from None


def _convert(text: str, kind: Any, where: str) -> Any:
    """Read the value of a parameter: a choice, thresholds, bool, float, int or text (or None)."""
    bare = next((k for k in get_args(kind) if k is not NoneType), kind) if _is_union(kind) else kind
    if get_origin(bare) is tuple:
        return tuple(_positive(part, where) for part in text.split(":"))
    if bare is float:
        return _number(text, where, "give one such as 0.5")
    if bare is int:
        return _whole(text, where)
    if getattr(bare, "__supertype__", bare) is str:
        return text
    choices = ("true", "false") if bare is bool else get_args(bare)
    if text not in choices:
        raise InputError(f"{where}: '{text}' is not one of {', '.join(choices)}{_near_choice(text, choices)}")
    return text == "true" if bare is bool else text


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _near_choice(text: str, choices: Sequence[str]) -> str:
    hint = did_you_mean(text, choices)
    return hint if "did you mean" in hint else ""


def _whole(text: str, where: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise InputError(f"{where}: '{text}' is not a whole number; give 1 or more") from None
    if number < 1:
        raise InputError(f"{where}: {number} is too small; give 1 or more")
    return number


def _number(text: str, where: str, right: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"{where}: '{text}' is not a number; {right}") from None
    if not isfinite(number):
        raise InputError(f"{where}: {text} is not finite; {right}")
    return number


def _positive(text: str, where: str) -> float:
    right = "give seconds above 0, or several as a:b:c"
    number = _number(text, where, right)
    if number <= 0:
        raise InputError(f"{where}: {text} is too small; {right}")
    return number
