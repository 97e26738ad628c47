"""Kinds: jobs that are alike in all that their speed, their demands and their sizes depend on.

Work, weight, tenant and times differ among the jobs of a kind. What is worked out for one job of a kind holds
for all of them, and `Job.kind` is the key to keep it under. Kinds and contents compare by identity. A cache
that has one as a key keeps it alive, so that nothing else can be taken for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from hashlib import sha256
from typing import cast

from trainyard.model.interned import interned

NAME = 1  # where the name of a profile stands in its content, which a job's own profile loses in a file
PLAIN = (float, int, str, type(None))


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Content:
    """What a profile says: profiles that say the same have the same one."""

    value: object

    def __reduce__(self) -> tuple[Callable[..., Content], tuple[object, ...]]:
        return interned, (Content, self.value)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Kind:
    """What jobs that are alike have in common."""

    content: Content | None  # of the profile
    gpus: int
    least_gpus: int
    most_gpus: int
    gpu_type: str
    asked_per_gpu: tuple[float | None, float | None]  # CPUs and GB
    sizes: tuple[int, ...] = ()  # the only numbers of GPUs it may run with; none: any

    def __reduce__(self) -> tuple[Callable[..., Kind], tuple[object, ...]]:
        return interned, (Kind, *(getattr(self, field.name) for field in fields(self)))


@lru_cache(maxsize=4096)
def kind_name(kind: Kind) -> str:
    """Return a name of a kind that files can hold, the same in every process."""
    content = None if kind.content is None else cast("tuple[object, ...]", kind.content.value)[NAME + 1 :]
    said = content, kind.gpus, kind.least_gpus, kind.most_gpus, kind.gpu_type, kind.asked_per_gpu
    return sha256(repr(_named(said)).encode()).hexdigest()[:16]


def _named(part: object) -> object:
    """Return values that are equal as the same text: 1 is 1.0."""
    if isinstance(part, tuple):
        return tuple(map(_named, part))
    return float(part) if isinstance(part, int) else part


def content_of(profile: object) -> Content:
    """Work out the content of a profile; ask `Profile.content`, which does it only once."""
    return interned(Content, _value(profile))


def _value(part: object) -> object:
    """Return a part of a profile as something that can be hashed.

    The order of a mapping counts: the first GPU type that `per_sample_s` names stands for those it does not.
    """
    if isinstance(part, PLAIN):
        return part
    if is_dataclass(part):
        return (type(part), *(_value(getattr(part, field.name)) for field in fields(part)))
    if isinstance(part, Mapping):
        return tuple((key, _value(value)) for key, value in part.items())
    return tuple(map(_value, part)) if isinstance(part, Iterable) else part
