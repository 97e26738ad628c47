"""Profiles: what is known of the speed of jobs, read straight into the dataclasses of the model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

import yaml

from trainyard.files.checking import check
from trainyard.files.document import load_document
from trainyard.files.output import write_text_atomic
from trainyard.files.position import LineOf, Path, Position, no_line
from trainyard.files.reading import StrPath
from trainyard.model.profile import Profile


def load_profiles(path: StrPath) -> dict[str, Profile]:
    """Read a YAML or JSON mapping of name to profile."""
    from trainyard.files import schemas

    data, place = load_document(path, "profiles by name")
    return {
        name: parse_profile(given, place.where, name=name, line_of=place.line_of, path=(name,))
        for name, given in check(schemas.PROFILES, data, place).items()
    }


def parse_profile(
    data: object, where: str, *, name: str = "", line_of: LineOf = no_line, path: Path = ()
) -> Profile:
    """Build a profile from data as in a profiles file; `where`, `line_of` and `path` place its errors."""
    from trainyard.files import schemas

    return replace(check(schemas.PROFILE, data, Position(where, line_of, path)), name=name)


def profile_record(profile: Profile) -> dict[str, Any]:
    """Return a profile as data for a file: without its name and what has its default value."""
    return {name: value for name, value in _record(profile).items() if name != "name"}


def save_profile(path: StrPath, profile: Profile) -> None:
    """Put a profile into a profiles file under its name; others that are in it stay."""
    from trainyard.files import schemas

    profiles = {**profiles_at(path), profile.name: profile}
    data = {name: profile_record(one) for name, one in profiles.items()}
    write_text_atomic(path, _text(path, check(schemas.PROFILES, data, Position(str(path)))))


def profiles_at(path: StrPath) -> dict[str, Profile]:
    """Read what a profiles file that is to be written has in it; nothing if it is not there yet."""
    there = os.path.isfile(path) and os.path.getsize(path) > 0
    return load_profiles(path) if there else {}


def _text(path: StrPath, data: dict[str, Any]) -> str:
    if str(path).endswith(".json"):
        return json.dumps(data, indent=2) + "\n"
    text: str = yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100)
    return text


def _record(part: Any) -> Any:
    if is_dataclass(part):
        values = {f.name: (getattr(part, f.name), _default(f)) for f in fields(part)}
        return {name: _record(value) for name, (value, default) in values.items() if value != default}
    if isinstance(part, Mapping):
        return dict(part)
    return [_record(item) for item in part] if isinstance(part, tuple) else part


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
