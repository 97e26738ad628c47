"""What may stand in a reservation of a cluster file, as a pydantic schema; imported only when one is read."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from trainyard.files.schemas import CLOSED, GIVEN, Count, Moment, Text, TypeName

SOME = "a list of at least one node, such as [V100-0]"


@with_config(CLOSED)
class ReservationEntry(TypedDict):
    """Nodes, or so many GPUs, that are kept for a tenant or for nobody."""

    from_s: Moment
    to_s: Moment
    nodes: NotRequired[Annotated[list[Text], Field(min_length=1, description=SOME)]]
    gpus: NotRequired[Count]
    gpu_type: NotRequired[TypeName]
    tenant: NotRequired[Text]
    name: NotRequired[Text]


RESERVATION = TypeAdapter[ReservationEntry](Annotated[ReservationEntry, GIVEN])
