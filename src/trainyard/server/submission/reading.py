"""A submission as it came: every field is known, and what it says makes sense by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from trainyard.errors import did_you_mean
from trainyard.files.checking import shown
from trainyard.live.environment import is_reserved
from trainyard.live.spec import Spec
from trainyard.model.limits import LARGEST, LARGEST_SUM, MAX_GPUS, MAX_S
from trainyard.server.faults import FieldError
from trainyard.server.submission.values import Reader, flag, line, list_of, name, number, text, whole

MOST_PRIORITY = 100
MOST_RETRIES = 1_000_000
MANY = 1000  # entries of a list
POWERS_OF_TWO = "powers_of_two"


class Size(NamedTuple):
    """How many GPUs a job may have; `sizes` are the only ones, if there are any."""

    least: int
    most: int
    sizes: tuple[int, ...] = ()

    @property
    def one(self) -> bool:
        """Whether it is one number."""
        return self.least == self.most


ONE = Size(1, 1)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a user asks for."""

    command: list[str] | str
    workdir: str
    name: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    gpus: Size = ONE
    servers: int | None = None  # None: as the model has them
    model: str = ""
    samples: float | None = None
    tenant: str = ""
    priority: int = 0
    cpus: float | None = None
    memory_gb: float | None = None
    gpu_types: tuple[str, ...] = ()
    retries: int = 0
    after: tuple[str, ...] = ()
    time_limit_s: float = inf
    max_wait_s: float = inf
    grace_s: float | None = None
    transient_exit_codes: tuple[int, ...] = ()
    preemptible: bool = True
    deadline_s: float | None = None
    user: str = ""
    request_key: str | None = None

    @property
    def spec(self) -> Spec:
        """The part that only backends need."""
        return {
            "command": self.command,
            "workdir": self.workdir,
            "env": dict(self.env),
            "grace_s": self.grace_s,
        }


def read_wish(body: Any) -> Wish:
    """Read a submission; FieldError says what is wrong with it."""
    if not isinstance(body, dict):
        raise FieldError("body", f"{shown(body)} is no job; give an object with command and workdir")
    for key in body:
        if key not in READERS:
            raise FieldError(str(key)[:40], f"there is no such field{did_you_mean(str(key)[:40], READERS)}")
    for needed in ("command", "workdir"):
        if body.get(needed) is None:
            raise FieldError(needed, "is missing; every job needs it")
    given = {key: READERS[key](key, value) for key, value in body.items() if value is not None}
    wish = Wish(**{"name": default_name(given["command"])} | given)
    _check_together(wish)
    return wish


def _check_together(wish: Wish) -> None:
    """See that what is said of a whole job is said of one size, and that samples mean something."""
    least, most, _ = wish.gpus
    for key in ("cpus", "memory_gb"):
        if getattr(wish, key) is not None and not wish.gpus.one:
            raise FieldError(key, f"the job may have {least} to {most} GPUs; this needs a job of one size")
    if wish.samples is not None and not wish.model:
        raise FieldError("samples", "nobody knows how fast they are; give model too, or leave this out")


def default_name(command: list[str] | str) -> str:
    """Return the program's name, as a name of a job."""
    words = command.split() if isinstance(command, str) else command
    cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", words[0].rsplit("/", 1)[-1]).lstrip("._-")[:63]
    return cleaned if cleaned and not cleaned.isdigit() else "job"


# -- fields that are more than one value ---------------------------------------------------------------------


def _command(field: str, value: Any) -> list[str] | str:
    if isinstance(value, str):
        if not text(field, value).strip():
            raise FieldError(field, "is empty; give a program and its arguments")
        return value
    if not isinstance(value, list):
        raise FieldError(
            field, f"{shown(value)} is no command; give a list of texts, or a text for the shell"
        )
    words = list(list_of(text, most=100_000)(field, value))
    if not words or not words[0].strip():
        raise FieldError(field, "is empty; give a program and its arguments")
    return words


def _workdir(field: str, value: Any) -> str:
    path = text(field, value)
    if not path.startswith("/"):
        raise FieldError(field, f"{shown(value)} does not begin with /; give the whole path")
    return path


def _env(field: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise FieldError(field, f"{shown(value)} does not fit; give names and values")
    for key, its_value in value.items():
        where = f"{field}.{key[:40]}"
        if not text(field, key) or "=" in key:
            raise FieldError(field, f"{shown(key)} is no name of a variable")
        if is_reserved(key):
            raise FieldError(where, "trainyard sets this variable itself; leave it out")
        text(where, its_value)
    return dict(value)


def _gpus(field: str, value: Any) -> Size:
    count = whole(1, MAX_GPUS)
    if not isinstance(value, dict):
        gpus = count(field, value)
        return Size(gpus, gpus)
    for key in value:
        if key not in ("min", "max", "sizes"):
            hint = did_you_mean(str(key), ("min", "max", "sizes"))
            raise FieldError(f"{field}.{key[:40]}", f"there is no such field{hint}")
    for key in ("min", "max"):
        if value.get(key) is None:
            raise FieldError(f"{field}.{key}", "is missing; give min and max")
    least, most = count(f"{field}.min", value["min"]), count(f"{field}.max", value["max"])
    if least > most:
        raise FieldError(f"{field}.min", f"{least} is more than max {most}; it must be at most that")
    return _sized(f"{field}.sizes", least, most, value.get("sizes"))


def _sized(field: str, least: int, most: int, given: Any) -> Size:
    """Keep the sizes that are between the least and the most."""
    if given is None or given == "any":
        return Size(least, most)
    if given == POWERS_OF_TWO:
        listed = [2**i for i in range(MAX_GPUS.bit_length())]
        what = "a power of two"
    elif isinstance(given, list):
        listed = sorted({*list_of(whole(1, MAX_GPUS), MANY, least=1)(field, given)})
        what = "in the list"
    else:
        raise FieldError(field, f"{shown(given)} does not fit; give a list, {POWERS_OF_TWO} or any")
    fit = tuple(size for size in listed if least <= size <= most)
    if not fit:
        raise FieldError(field, f"no size from min {least} to max {most} is {what}")
    return Size(fit[0], fit[-1], fit if len(fit) > 1 else ())


def _types(field: str, value: Any) -> tuple[str, ...]:
    types: tuple[str, ...] = list_of(line, MANY)(field, value)
    if len({*types}) > 1:
        raise FieldError(
            field, f"{len(types)} types; a job can ask for one type, or for any (leave this out)"
        )
    return types[:1]


READERS: dict[str, Reader] = {
    "name": name,
    "command": _command,
    "workdir": _workdir,
    "env": _env,
    "gpus": _gpus,
    "servers": whole(0, MAX_GPUS),
    "model": line,
    "samples": number(LARGEST_SUM),
    "tenant": line,
    "priority": whole(-MOST_PRIORITY, MOST_PRIORITY),
    "cpus": number(LARGEST),
    "memory_gb": number(LARGEST),
    "gpu_types": _types,
    "retries": whole(0, MOST_RETRIES),
    "after": list_of(line, MANY),
    "time_limit_s": number(MAX_S),
    "max_wait_s": number(MAX_S),
    "grace_s": number(MAX_S, or_zero=True),
    "transient_exit_codes": list_of(whole(1, 255), 255),
    "preemptible": flag,
    "deadline_s": number(MAX_S),
    "user": line,
    "request_key": line,
}
