"""Profiles: what is known of the speed of jobs, read straight into the dataclasses of the model.

The dataclasses are the schema: their fields, types and defaults say what a file may hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from trainyard.files.document import load_document
from trainyard.files.reading import StrPath
from trainyard.files.section import LineOf, Path, Section, no_line
from trainyard.files.values import Choice, FieldError, Kind, Number, Text, Whole, shown
from trainyard.model.profile import Profile

# All numbers of a profile are at least 0; a speed follows from these by division, so they must be above it.
ABOVE_ZERO = {"per_sample_s"}
NOT_IN_FILES = {"name"}  # a profile's name is the key it stands under


def load_profiles(path: StrPath) -> dict[str, Profile]:
    """Read a YAML or JSON mapping of name to profile."""
    root = load_document(path, "profiles by name")
    named = ((root.key_text(key), data) for key, data in root.data.items())
    return {
        name: parse_profile(data, root.where, name=name, line_of=root.line_of, path=(name,))
        for name, data in named
    }


def parse_profile(
    data: object, where: str, *, name: str = "", line_of: LineOf = no_line, path: Path = ()
) -> Profile:
    """Build a profile from data as in a profiles file; `where`, `line_of` and `path` place its errors."""
    profile = _read_dataclass(Profile, data, Section({}, where, line_of), path)
    assert isinstance(profile, Profile)
    return replace(profile, name=name)


def profile_record(profile: Profile) -> dict[str, Any]:
    """Return a profile as data for a file, without what has its default value."""
    return {name: value for name, value in _record(profile).items() if name not in NOT_IN_FILES}


def _record(part: Any) -> Any:
    if is_dataclass(part):
        values = {f.name: (getattr(part, f.name), _default(f)) for f in fields(part)}
        return {name: _record(value) for name, (value, default) in values.items() if value != default}
    if isinstance(part, Mapping):
        return dict(part)
    return [_record(item) for item in part] if isinstance(part, tuple) else part


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


@cache
def _fields(cls: Any) -> dict[str, tuple[Any, bool]]:
    """Type of each field that a file may give, and whether it must."""
    types = get_type_hints(cls)
    known = (f for f in fields(cls) if not (cls is Profile and f.name in NOT_IN_FILES))
    return {f.name: (types[f.name], _default(f) is MISSING) for f in known}


def _read(hint: Any, value: object, root: Section, path: Path) -> Any:
    """Read a value as the type says; `path` leads to it from the root of the file."""
    if NoneType in get_args(hint):
        hint = get_args(hint)[0]
    if is_dataclass(hint):
        return _read_dataclass(hint, value, root, path)
    if get_origin(hint) is tuple:
        return _read_list(get_args(hint), value, root, path)
    if get_origin(hint) is Mapping:
        return _read_mapping(get_args(hint)[1], value, root, path)
    try:
        return _kind(hint, path).accept(value)
    except FieldError as wrong:
        raise root.error(wrong.what, *path) from None


def _read_dataclass(cls: Any, value: object, root: Section, path: Path) -> Any:
    section = Section(value, root.where, root.line_of, path)
    known = _fields(cls)
    section.only(known)
    for name, (_, required) in known.items():
        if required and section.data.get(name) is None:
            raise section.error(f"'{name}' is missing; give {', '.join(known)}", name)
    given = {name: section.data[name] for name in known if section.data.get(name) is not None}
    return cls(**{name: _read(known[name][0], item, root, (*path, name)) for name, item in given.items()})


def _read_mapping(hint: Any, value: object, root: Section, path: Path) -> dict[str, Any]:
    section = Section(value, root.where, root.line_of, path)
    named = ((section.key_text(key), item) for key, item in section.data.items())
    return {name: _read(hint, item, root, (*path, name)) for name, item in named}


def _read_list(parts: tuple[Any, ...], value: object, root: Section, path: Path) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise root.error(f"{shown(value)} is not a list; it must be written as [...]", *path)
    if parts[-1] is Ellipsis:
        parts = (parts[0],) * len(value)
    if len(parts) != len(value):
        raise root.error(f"the row has {len(value)} numbers; it must have {len(parts)}", *path)
    return tuple(_read(parts[i], item, root, (*path, i)) for i, item in enumerate(value))


def _kind(hint: Any, path: Path) -> Kind[object]:
    if get_origin(hint) is Literal:
        return Choice(get_args(hint))
    if hint is int:
        return Whole(1, 10**9)
    return Text() if hint is str else Number(above=not ABOVE_ZERO.isdisjoint(path))
