"""What is believed of the length of one job that nobody told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from trainyard.model.estimate import Estimate

FIRST_LOOK_S: Final = 60.0  # executed; the belief is looked at again at twice that, and so on


@dataclass(slots=True)
class Length:
    """A belief, and the samples done: these are counted by themselves, since the total may change."""

    estimate: Estimate
    done: float = 0.0  # samples, at the record's `since`
    saved: float = 0.0  # samples, at the last checkpoint
    look_s: float = FIRST_LOOK_S  # executed seconds at which the belief is due
    noted: int = 0  # the entry that says when that will be

    @property
    def known(self) -> bool:
        """Whether somebody has told the length meanwhile."""
        return self.estimate.source == "told"

    def copy(self) -> Length:
        """Return an independent copy."""
        return replace(self)

    def record(self, total: float) -> dict[str, Any]:
        """Return it, with the samples that are believed in all, as data for a file."""
        numbers = {"total": total, "done": self.done, "saved": self.saved, "look_s": self.look_s}
        return numbers | self.estimate._asdict()


def restored(kept: Mapping[str, Any]) -> tuple[Length, float]:
    """Return what was believed in an earlier life, and the samples in all."""
    estimate = Estimate(kept["mean"], kept["p10"], kept["p90"], kept["source"])
    return Length(estimate, kept["done"], kept["saved"], kept["look_s"]), kept["total"]
