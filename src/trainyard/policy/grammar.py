"""The policy grammar: stage names joined by `+`, parameters in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, get_args, get_origin

from trainyard.errors import InputError, did_you_mean
from trainyard.policy.blame import Borrowed, stage_error
from trainyard.policy.order.fairshare import FairShare
from trainyard.policy.order.mixed import Mixed, mixed
from trainyard.policy.parameters import bare, parameters_of
from trainyard.policy.policy import Policy
from trainyard.policy.registry import DEFAULTS, ENTRIES, PRESETS, STAGES, Entry, Stage
from trainyard.policy.stages import Size

FAIR_SHARE: dict[str, Any] = {"fairshare": float, "half_life_s": float}  # parameters of every order
MOST_WHOLE = 1_000_000_000
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
    origins: list[tuple[Any, str]] = []
    for entry, given, written in _terms(text):
        made = _make(entry, given, text)
        if entry.origin:
            origins.append((made.order if isinstance(made, Mixed) else made, entry.origin))
        for stage in entry.stages:
            if stage in stages:
                both = f"'{named[stage]}' and '{written}' both fill the {stage} stage"
                raise InputError(f"policy '{text}': {both}; name at most one")
            stages[stage], named[stage] = made, written
    for stage in STAGES:
        if stage not in stages:
            stages[stage] = ENTRIES[_default(stage, stages.values())].make()
    name = text.strip()
    return Borrowed(name, **stages, origins=tuple(origins)) if origins else Policy(name, **stages)


def _default(stage: Stage, named: Iterable[Any]) -> str:
    """Name of a stage that is not given: the usual one; a size stage may bring its own order."""
    own = [made.order for made in named if isinstance(made, Size) and made.order] if stage == "order" else []
    return own[0] if own else DEFAULTS[stage]


def parse_policies(text: str) -> list[Policy]:
    """Build several policies from a comma-separated list."""
    parts = [part.strip() for part in split_outside_brackets(text, ",")]
    if len(parts) > 1 and not all(parts):
        raise InputError(f"policies '{text}': a comma has no policy on one side; leave out the comma")
    policies = [parse_policy(part) for part in parts]
    first: dict[frozenset[tuple[str, ...]], str] = {}
    for name in parts:
        other = first.setdefault(_content(name), name)
        if other is not name:
            also = f" as '{other}'" if other != name else ""
            raise InputError(f"policy '{name}' is listed twice{also}; name each policy once")
    return policies


def _content(text: str) -> frozenset[tuple[str, ...]]:
    """What a name says, however it is written: the terms and their parameters, in any order and case."""
    return frozenset(
        (entry.name, *sorted("".join(part.split()) for part in given.split(",")))
        for entry, given, _ in _terms(text)
    )


def entries_of(text: str) -> dict[str, Entry]:
    """Return the entry of each term of a policy's name; a preset is written out, easy as fifo(fill=easy)."""
    return {f"{entry.name}({given})" if given else entry.name: entry for entry, given, _ in _terms(text)}


def _terms(text: str) -> list[tuple[Entry, str, str]]:
    """Return the entry, the parameters and the name as written of each term; presets are written out."""
    terms: list[tuple[Entry, str, str]] = []
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
            terms += [(entry, own, name) for entry, own, _ in _terms(PRESETS[name])]
        else:
            terms.append((ENTRIES[name] if name in ENTRIES else _plugin(name, text), given, name))
    return terms


def _plugin(name: str, text: str) -> Entry:
    """Return a stage of another package; only names that are not ours cost the search for it."""
    from trainyard.policy.plugins import installed, load, usable

    # A name in capitals cannot be used, but its error says so; one in lower case is the better find.
    found = {plugin.name.lower(): plugin for plugin in sorted(installed(), key=lambda p: p.name)}
    if name not in found:
        known = did_you_mean(name, [*ENTRIES, *PRESETS, *usable()])
        more = "; 'trainyard policies' lists all" if known.endswith("...") else ""
        raise InputError(f"policy '{text}': unknown stage '{name}'{known}{more}")
    try:
        return load(found[name])
    except InputError as error:
        raise InputError(f"policy '{text}': {error}") from error.__cause__


def _make(entry: Entry, given: str, text: str) -> Any:
    own = parameters_of(entry.make)
    fair = {} if "order" not in entry.stages or entry.make is FairShare else FAIR_SHARE
    known = fair | own
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
        mix = {name: values.pop(name) for name in fair.keys() & values.keys() - own.keys()}
        made = entry.make(**values)
        return mixed(made, **mix) if mix else made
    except InputError as error:
        raise InputError(f"policy '{text}', stage {entry.name}: {error}") from None
    except (Exception, SystemExit) as error:
        if not entry.origin:
            raise
        raise stage_error(text, entry.origin, error, " when it is made") from error


def _convert(text: str, kind: Any, where: str) -> Any:
    """Read the value of a parameter: a choice, thresholds, bool, float, int or text (or None)."""
    wanted = bare(kind)
    if get_origin(wanted) is tuple:
        return tuple(_positive(part, where) for part in text.split(":"))
    if wanted is float:
        return _number(text, where, "give one such as 0.5")
    if wanted is int:
        return _whole(text, where)
    if getattr(wanted, "__supertype__", wanted) is str:
        return text
    choices = ("true", "false") if wanted is bool else get_args(wanted)
    if text not in choices:
        raise InputError(f"{where}: '{text}' is not one of {', '.join(choices)}{_near_choice(text, choices)}")
    return text == "true" if wanted is bool else text


def _near_choice(text: str, choices: Sequence[str]) -> str:
    hint = did_you_mean(text, choices)
    return hint if "did you mean" in hint else ""


def _whole(text: str, where: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise InputError(f"{where}: '{text}' is not a whole number; give 1 or more") from None
    if number < 1:
        raise InputError(f"{where}: {text} is too small; give 1 or more")
    if number > MOST_WHOLE:
        raise InputError(f"{where}: {text[:40]} is too large; give at most {MOST_WHOLE}")
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
