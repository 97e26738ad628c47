"""Trained weights: by name those that come with the package, by path any other (safetensors).

Beside the network's arrays a file has `low` and `high`, between which the numbers of jobs were in training,
and texts: the kind of network, the names of profiles that it tells apart, the slot it was trained for, and
the command, seed and scores that made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainyard.errors import InputError, did_you_mean
from trainyard.files.reading import StrPath
from trainyard.files.safetensors import load_tensors, save_tensors
from trainyard.policy.size.dl2.arrays import Singles
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.matrix import Raw
from trainyard.policy.size.dl2.network import Network, network_of

SHIPPED = Path(__file__).parent / "weights"
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Weights:
    """What a weights file holds."""

    kind: str  # set or window
    names: tuple[str, ...]
    slot_s: float
    arrays: Mapping[str, Singles]
    low: Singles  # (features of a job,)
    high: Singles
    low_cluster: Singles  # (features of a cluster,)
    high_cluster: Singles
    made: Mapping[str, str]  # command, seed, scores
    where: str = ""

    def features(self) -> Features:
        """What the network sees of jobs."""
        return Features(self.names) if self.kind == "set" else Raw(self.names)

    def network(self) -> Network:
        """Build the network."""
        return network_of(self.kind, self.arrays, self.where)


RANGES = ("low", "high", "low_cluster", "high_cluster")


def shipped() -> dict[str, Path]:
    """Weights that come with the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob(f"*{SUFFIX}"))}


def save_weights(path: StrPath, weights: Weights) -> None:
    """Write a weights file."""
    texts = {"kind": weights.kind, "names": json.dumps(weights.names), "slot_s": repr(weights.slot_s)}
    ranges = {name: getattr(weights, name) for name in RANGES}
    save_tensors(path, {**weights.arrays, **ranges}, {**texts, **weights.made})


@cache
def load_weights(name: str) -> Weights:
    """Read weights by name or path."""
    known = shipped()
    path = known.get(name)
    if path is None:
        if not (name.lower().endswith(SUFFIX) or "/" in name):
            raise InputError(f"there are no weights '{name}'{did_you_mean(name, known)}, or a file {SUFFIX}")
        path = Path(name)
    return read_weights(path)


def read_weights(path: Path) -> Weights:
    """Read a weights file as it is now."""
    arrays, texts = load_tensors(path)
    try:
        ranges = {key: arrays.pop(key) for key in RANGES}
        kind, names, slot_s = (
            texts.pop("kind"),
            tuple(json.loads(texts.pop("names"))),
            float(texts.pop("slot_s")),
        )
    except (KeyError, ValueError):
        what = "these are not weights of dl2; name a file that 'trainyard train' wrote"
        raise InputError(what, where=str(path)) from None
    weights = Weights(kind, names, slot_s, arrays, **ranges, made=texts, where=str(path))
    seen, sees = weights.low.size, weights.features().of_job
    if seen != sees:
        what = f"made by another version: {seen} numbers of a job instead of {sees}; train anew"
        raise InputError(what, where=str(path))
    return weights
