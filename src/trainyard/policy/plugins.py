"""Stages of other packages, found by their entry points in the group `trainyard.stages`."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from trainyard.errors import InputError
from trainyard.policy.parameters import parameters_of, readable
from trainyard.policy.registry import ENTRIES, PRESETS, STAGES, Entry
from trainyard.policy.stages import Order, Place, Size, Tune

GROUP = "trainyard.stages"
BASES = (Order, Size, Place, Tune)  # in the order of STAGES
NAME = re.compile(r"[a-z][a-z0-9_-]*")  # the grammar reads names in lower case


@dataclass(frozen=True, slots=True)
class Plugin:
    """A stage name that another package brings, not imported yet."""

    name: str
    package: str
    point: EntryPoint
    problem: str = ""  # why the name cannot be used, if that shows without an import

    @property
    def origin(self) -> str:
        """The name, the package and the entry point, for messages."""
        return f"stage '{self.name}' of package '{self.package}' (entry point {self.point.value})"

    def error(self, what: str) -> InputError:
        """Return an error that names the package and the entry point."""
        return InputError(f"{self.origin}: {what}")


def installed() -> list[Plugin]:
    """Return what the installed packages bring, by name."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _package(point)))
    count = Counter(point.name for point in points)
    return [Plugin(p.name, _package(p), p, _problem(p.name, count[p.name])) for p in points]


def usable() -> list[str]:
    """Return the names that can be used; to know it, every stage is imported."""
    names = []
    for plugin in installed():
        with suppress(InputError):
            names.append(load(plugin).name)
    return names


def load(plugin: Plugin) -> Entry:
    """Import a stage of another package; an error says in one line what is wrong with it."""
    if plugin.problem:
        raise plugin.error(plugin.problem)
    try:
        make = plugin.point.load()
    except (Exception, SystemExit) as error:  # whatever goes wrong in there, all other policies must work
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise plugin.error(f"it cannot be imported ({said}); repair or uninstall the package") from error
    stages = _stages(make)
    if not stages:
        raise plugin.error("it is no stage; derive its class from ScoreOrder, Order, Size, Place or Tune")
    problem = _unusable(make)
    if problem:
        raise plugin.error(problem)
    return Entry(plugin.name, stages, make, _line(make), origin=plugin.origin)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "?"


def _problem(name: str, count: int) -> str:
    """Return why a name cannot be used, whatever stands behind it."""
    if not NAME.fullmatch(name):
        return "no policy can name it; use a letter, then letters, digits, '-' and '_', all in lower case"
    if name in ENTRIES or name in PRESETS:
        return "trainyard itself has this name; the package must choose another one"
    return "several packages bring this name; uninstall all but one" if count > 1 else ""


def _stages(make: Any) -> tuple[Any, ...]:
    """Return the stages that a class fills, by what it derives from."""
    if not isinstance(make, type):
        return ()
    return tuple(stage for stage, base in zip(STAGES, BASES, strict=True) if issubclass(make, base))


def _unusable(make: type[Any]) -> str:
    """Return why no stage can be made of a class."""
    lacks = sorted(getattr(make, "__abstractmethods__", ()))
    if lacks:
        return f"class {make.__name__} lacks the method '{lacks[0]}'; define it"
    right = "annotate it with float, int, bool, str, Literal or tuple[float, ...] and give it a default"
    try:
        kinds = parameters_of(make)
    except (KeyError, NameError, TypeError) as error:
        return f"the types of its parameters are not known ({error}); {right}"
    given = inspect.signature(make.__init__).parameters
    for name, kind in kinds.items():
        if not readable(kind) or given[name].default is inspect.Parameter.empty:
            return f"no policy can give its parameter '{name}'; {right}"
    return ""


def _line(make: type[Any]) -> str:
    """Return the first line of its docstring."""
    return (make.__doc__ or "no description").strip().splitlines()[0].rstrip(".")
