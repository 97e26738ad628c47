"""What may stand in each file, as pydantic schemas; imported only when a file is read.

Records of jobs and profiles are made from the model's dataclasses, so a field added there may stand in files.
Descriptions end up in error messages: "it must be ...".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    with_config,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from trainyard.files.checking import near_miss
from trainyard.model.estimate import Source
from trainyard.model.job import Job
from trainyard.model.limits import LARGEST, LARGEST_SUM, MAX_GPUS, MAX_S, MAX_SEED, SMALLEST
from trainyard.model.profile import Profile

POWERS_OF_TWO = "powers_of_two"


def _whole(value: Any) -> Any:
    """Take 8.0 for 8: spreadsheets and data frames write it so."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _digits(value: Any) -> Any:
    """Take a whole number for a name."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _sizes(value: Any) -> Any:
    """Take 1|2|4 for a list, and write out powers_of_two."""
    if value == POWERS_OF_TWO:
        return [2**i for i in range(MAX_GPUS.bit_length())]
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split("|")]
    return [int(part) for part in parts] if all(map(_is_count, parts)) else value


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(MAX_GPUS))


def _given(value: Any) -> Any:
    """Leave out what is null: it counts as not given."""
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _open(record: Any) -> BeforeValidator:
    """Allow unknown keys, but not those that are almost a known one that is not given; "" is like null."""
    known = frozenset(record.__annotations__)

    def given(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for name in sorted(map(str, value.keys() - known)):
            if near := near_miss(name, known.difference(value)):
                raise PydanticCustomError("near_miss", "{what}", {"what": near, "name": name})
        return {k: v for k, v in value.items() if v is not None and v != ""}

    return BeforeValidator(given)


GIVEN, WHOLE, DIGITS = BeforeValidator(_given), BeforeValidator(_whole), BeforeValidator(_digits)
LINE = StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]*$")  # printable
SOME_NODES = "a list of at least one, such as [{count: 4, gpus: 8}]"
CLOSED = ConfigDict(extra="forbid")


AtLeastZero = Annotated[
    float, Field(ge=0, le=LARGEST, allow_inf_nan=False, description="a number of at least 0, at most 1e15")
]
AboveZero = Annotated[
    float, Field(gt=0, le=LARGEST_SUM, allow_inf_nan=False, description="a number above 0, at most 1e24")
]
# Much less would be as good as 0, which would be divided by.
Positive = Annotated[
    float,
    Field(ge=SMALLEST, le=LARGEST, allow_inf_nan=False, description="a number above 0, from 1e-15 to 1e15"),
]
Moment = Annotated[
    float, Field(ge=0, le=MAX_S, allow_inf_nan=False, description="a number of at least 0, at most 1e12")
]
Duration = Annotated[
    float,
    Field(ge=SMALLEST, le=MAX_S, allow_inf_nan=False, description="a number above 0, from 1e-15 to 1e12"),
]
Summed = Annotated[
    float,
    Field(ge=0, le=LARGEST_SUM, allow_inf_nan=False, description="a number of at least 0, at most 1e24"),
]
WholeCell = Annotated[int, Field(ge=1, le=MAX_GPUS, description=f"a whole number from 1 to {MAX_GPUS}")]
Count = Annotated[WholeCell, WHOLE]
WholeCellFrom0 = Annotated[int, Field(ge=0, le=MAX_GPUS, description=f"a whole number from 0 to {MAX_GPUS}")]
CountFrom0 = Annotated[WholeCellFrom0, WHOLE]
TwoNumbers = Annotated[list[Summed], Field(min_length=2, max_length=2, description="two numbers")]
FourNumbers = Annotated[list[Summed], Field(min_length=4, max_length=4, description="four numbers")]
AtMostOne = Annotated[
    float, Field(ge=-LARGEST, le=1, allow_inf_nan=False, description="a number of at most 1")
]
Batch = Annotated[int, Field(ge=1, le=10**9, description="a whole number from 1 to 1000000000"), WHOLE]
PriorityCell = Annotated[
    int, Field(ge=-MAX_GPUS, le=MAX_GPUS, description=f"a whole number from -{MAX_GPUS} to {MAX_GPUS}")
]
Priority = Annotated[PriorityCell, WHOLE]
Sizes = Annotated[
    list[Count],
    BeforeValidator(_sizes),
    Field(min_length=1, description="numbers of GPUs such as 1|2|4 (in JSON [1, 2, 4]), or powers_of_two"),
    AfterValidator(lambda sizes: tuple(sorted({*sizes}))),
]
Flag = Annotated[bool, Field(description="true or false")]
Text = Annotated[str, LINE, Field(description="one line of text")]
TypeName = Annotated[Text, Field(description="one line of text such as 'V100'")]
ModelName = Annotated[Text, Field(description="one line of text such as 'resnet50'")]
JobId = Annotated[Text, Field(description="one line of text such as 'job-17'")]


@with_config(CLOSED)
class GpuTypeEntry(TypedDict, total=False):
    """A GPU type of a cluster file."""

    speed: Positive
    memory_gb: Positive


@with_config(CLOSED)
class NodeEntry(TypedDict):
    """Equal nodes of a cluster file."""

    count: Count
    gpus: Count
    gpu_type: NotRequired[TypeName]
    prefix: NotRequired[Annotated[Text, Field(description="one line of text such as 'rack1'")]]
    cpus: NotRequired[Positive]
    memory_gb: NotRequired[Positive]
    network_gbps: NotRequired[Positive]
    intra_gbps: NotRequired[Positive]
    storage_mbps: NotRequired[Positive]


@with_config(CLOSED)
class TenantEntry(TypedDict, total=False):
    """A tenant of a cluster file."""

    guaranteed: CountFrom0
    limit: Count
    weight: Positive
    max_priority: Priority


@with_config(CLOSED)
class ClusterEntry(TypedDict):
    """A cluster file."""

    name: NotRequired[Annotated[Text, Field(description="one line of text such as 'lab'")]]
    gpu_types: NotRequired[dict[Text, Annotated[GpuTypeEntry, GIVEN]]]
    nodes: Annotated[list[Annotated[NodeEntry, GIVEN]], Field(min_length=1, description=SOME_NODES)]
    tenants: NotRequired[dict[Text, Annotated[TenantEntry, GIVEN]]]
    reservations: NotRequired[list[dict[str, Any]]]  # read one by one


@with_config(CLOSED)
class RulesEntry(TypedDict, total=False):
    """The rules of the run that a snapshot is of."""

    round_s: Duration
    restart_s: Moment
    start_s: Moment
    seed: Annotated[int, Field(ge=0, le=MAX_SEED, description="a whole number from 0 to 2**63 - 1"), WHOLE]


@with_config(CLOSED)
class AccountEntry(TypedDict):
    """What a tenant, or a user of one, has used."""

    name: Annotated[
        list[str], Field(min_length=1, max_length=2, description="a tenant, or a tenant and a user")
    ]
    gpu_s: AtLeastZero  # left at since_s of what it used
    since_s: AtLeastZero
    gpus: CountFrom0  # that it holds since then


@with_config(CLOSED)
class UsageEntry(TypedDict):
    """Decayed usage."""

    half_life_s: Duration
    accounts: list[AccountEntry]


@with_config(CLOSED)
class CorrectionEntry(TypedDict):
    """How fast jobs of a kind are, as parts of what their profile says."""

    kind: Text  # a name of everything that a kind is made of
    measured: Positive
    believed: Positive


@with_config(CLOSED)
class PastEntry(TypedDict):
    """What past jobs were that are alike in this: all of it, tenant and model, or nothing (the site)."""

    totals_s: list[Positive]  # seconds as requested, oldest first
    tenant: NotRequired[str]
    user: NotRequired[str]
    model: NotRequired[str]
    gpus: NotRequired[Count]


@with_config(CLOSED)
class BooksEntry(TypedDict):
    """What a run's snapshot has besides its jobs, so that nothing of the core's books is lost."""

    version: NotRequired[Summed]  # changes so far
    met: Summed  # integral of the number of active jobs over time
    rows: list[Text]  # jobs in the order of the table
    target: list[Text]  # jobs that hold something, in the order in which they were given it
    free_cpus: list[Any]  # of each node, to the last bit
    free_memory_gb: list[Any]
    said: dict[str, Any]  # notes of the last plan
    usage: NotRequired[UsageEntry]
    corrections: NotRequired[list[Annotated[CorrectionEntry, GIVEN]]]  # of speeds, by reports
    history: NotRequired[list[Annotated[PastEntry, GIVEN]]]  # past jobs, by what they were
    decided_s: NotRequired[Moment]  # when the last decision was taken


@with_config(CLOSED)
class SnapshotEntry(TypedDict):
    """A snapshot; its jobs are read one by one."""

    now_s: Moment
    cluster: Annotated[ClusterEntry, GIVEN]
    jobs: list[dict[str, Any]]
    rules: NotRequired[Annotated[RulesEntry, GIVEN]]
    down: NotRequired[list[Text]]
    books: NotRequired[Annotated[BooksEntry, GIVEN]]


@with_config(CLOSED)
class ShareEntry(TypedDict):
    """What a job of a snapshot holds on a node."""

    gpus: CountFrom0
    servers: NotRequired[CountFrom0]
    cpus: NotRequired[AtLeastZero]
    memory_gb: NotRequired[AtLeastZero]


@with_config(CLOSED)
class LengthEntry(TypedDict):
    """What is believed of the length of a job."""

    total: Positive  # samples
    done: AtLeastZero  # samples at since_s
    saved: AtLeastZero  # samples done at the last checkpoint
    look_s: Positive  # executed seconds at which this is looked at again
    mean: Positive  # seconds as requested
    p10: Positive
    p90: Positive
    source: Source


@with_config(CLOSED)
class RecordEntry(TypedDict):
    """The core's own numbers of a job, to the last bit; seconds from the start of the run."""

    seq: Annotated[
        int, Field(ge=1, le=MAX_SEED, description="a whole number above 0"), WHOLE
    ]  # order of submission
    remaining: Summed  # samples left at since_s
    since_s: Summed
    given_since_s: Summed
    attained: Summed  # GPU-seconds up to given_since_s
    executed: Summed  # seconds with GPUs up to given_since_s
    met: Summed
    saved: Summed  # samples left at the last checkpoint
    run_since_s: Summed
    restarts: CountFrom0
    preemptions: CountFrom0
    trained_with: CountFrom0
    first_start_s: NotRequired[Summed]
    arrived_s: NotRequired[Summed]  # when it was submitted; its own arrival_s, if that is not said
    rate: NotRequired[Summed]  # samples/s since since_s; 0: it has been given GPUs but has not started
    ran: NotRequired[list[FourNumbers]]  # workers, servers; seconds and samples at this size
    losses: NotRequired[list[TwoNumbers]]  # samples done, loss
    type_s: NotRequired[list[Summed]]  # seconds on each GPU type
    reported_s: NotRequired[AtLeastZero]  # when it last said how far it is
    pace: NotRequired[Positive]  # measured speed / speed by the model, of a job without a profile
    length: NotRequired[Annotated[LengthEntry, GIVEN]]  # of a job whose length nobody told


class ProgressEntry(TypedDict, total=False):
    """How far a job of a snapshot is."""

    remaining_samples: AboveZero
    remaining_s: AboveZero
    attained_gpu_s: Summed
    allocation: dict[Text, Annotated[ShareEntry, GIVEN]]
    record: Annotated[RecordEntry, GIVEN]


@with_config(CLOSED)
class DecidedEntry(TypedDict):
    """A job in a line of a decision log: how far it is, what it held, and what it gets."""

    job_id: Annotated[JobId, DIGITS]
    workers: CountFrom0
    servers: NotRequired[CountFrom0]
    remaining_samples: NotRequired[AboveZero]
    remaining_s: NotRequired[AboveZero]
    attained_gpu_s: NotRequired[Summed]
    held_workers: NotRequired[CountFrom0]
    held_servers: NotRequired[CountFrom0]


@with_config(CLOSED)
class LogLine(TypedDict, total=False):
    """A line of a decision log: of a cluster, of a job, or of a decision."""

    cluster: Annotated[ClusterEntry, GIVEN]
    slot_s: Duration
    profiles: dict[Text, Any]
    job: dict[str, Any]
    now_s: Moment
    jobs: list[Annotated[DecidedEntry, GIVEN]]


class SampleRow(TypedDict):
    """A row of a samples file."""

    workers: WholeCell
    samples_per_s: Positive
    servers: NotRequired[WholeCellFrom0]
    cpus: NotRequired[Positive]
    memory_gb: NotRequired[AtLeastZero]
    gpu_type: NotRequired[TypeName]
    nodes: NotRequired[WholeCell]


class FailureRow(TypedDict):
    """A row of a failures file."""

    time_s: Moment
    node: Annotated[Text, Field(description="one line of text such as 'V100-0'")]
    repair_s: Duration


# Types made at run time, which type checkers cannot follow.
_typed_dict: Any = TypedDict
_list: Any = list
_dict: Any = dict


def _record(cls: Any, kinds: Mapping[Any, Any], config: ConfigDict) -> Any:
    """Make the schema of a dataclass in files; `kinds` says what its types, or single fields, become."""
    hints, keys = get_type_hints(cls), {}
    for field in fields(cls):
        if not field.init or (cls, field.name) in ((Profile, "name"), (Job, "terms")):
            continue  # derived; the key that the profile stands under; not for jobs of a file
        kind = kinds[field.name] if field.name in kinds else _in_files(hints[field.name], kinds)
        needed = field.default is MISSING and field.default_factory is MISSING
        keys[field.name] = kind if needed else NotRequired[kind]
    return with_config(config)(_typed_dict(cls.__name__, keys))


def _in_files(hint: Any, kinds: Mapping[Any, Any]) -> Any:
    """Return what stands in a file for a type of the model."""
    parts: Any = get_args(hint)
    if NoneType in parts:
        return _in_files(parts[0], kinds)
    if is_dataclass(hint) and isinstance(hint, type):
        return Annotated[_record(hint, kinds, CLOSED), GIVEN, AfterValidator(lambda given: hint(**given))]
    if get_origin(hint) is tuple:
        assert len({*parts} - {Ellipsis}) == 1, f"{hint}: all parts of a tuple must have one type"
        size = None if Ellipsis in parts else len(parts)
        wanted = f"a list of {size} numbers" if size else "written as [...]"
        limits = Field(min_length=size, max_length=size, description=wanted)
        return Annotated[_list[_in_files(parts[0], kinds)], limits, AfterValidator(tuple)]
    if get_origin(hint) is Mapping:
        return _dict[Text, _in_files(parts[1], kinds)]
    return kinds.get(hint, hint)


# Most numbers of a profile are at least 0; a speed follows from per_sample_s by division.
PROFILE_KINDS = {
    float: AtLeastZero,
    int: Batch,
    bool: Flag,
    str: Text,
    "per_sample_s": dict[Text, Positive],
    "restart_s": Moment,
    "b1": Positive,
    "epoch_samples": Positive,
    "outliers": CountFrom0,
    "r2": AtMostOne,
}
ROW_KINDS = {
    float: Positive,
    int: WholeCell,
    str: Text,
    "job_id": JobId,
    "arrival_s": Moment,
    "duration_s": Duration,
    "checkpoint_s": Moment,
    "deadline_s": Duration,
    "model": ModelName,
    "gpu_type": TypeName,
    "priority": PriorityCell,
    "sizes": Sizes,
    bool: Flag,
    "profile": Any,  # read by itself, so that equal ones become one object
}
JOB_KINDS = ROW_KINDS | {
    int: Count,
    "priority": Priority,
    str: Annotated[Text, DIGITS],
    "job_id": Annotated[JobId, DIGITS],
}
OPEN = ConfigDict(extra="ignore")
_job = _record(Job, JOB_KINDS, OPEN)

CLUSTER = TypeAdapter[ClusterEntry](Annotated[ClusterEntry, GIVEN])
PROFILE = TypeAdapter[Profile](_in_files(Profile, PROFILE_KINDS))
PROFILES = TypeAdapter[dict[str, Any]](dict[Text, Any])
JOB_ROW: TypeAdapter[dict[str, Any]] = TypeAdapter(_record(Job, ROW_KINDS, OPEN))
JOB: TypeAdapter[dict[str, Any]] = TypeAdapter(Annotated[_job, _open(_job)])  # type: ignore[arg-type]
SNAPSHOT = TypeAdapter[SnapshotEntry](Annotated[SnapshotEntry, GIVEN])
PROGRESS = TypeAdapter[ProgressEntry](Annotated[ProgressEntry, _open(ProgressEntry)])
LOG_LINE = TypeAdapter[LogLine](Annotated[LogLine, GIVEN])
FAILURE = TypeAdapter[FailureRow](FailureRow)
SAMPLE = TypeAdapter[SampleRow](SampleRow)
