"""The speed model: one file per physical effect, composed in `model`."""

from trainyard.model.speed.model import SpeedModel
from trainyard.model.speed.ratios import Ratios
from trainyard.model.speed.sensitivity import Ladder, Sensitivity
from trainyard.model.speed.shapes import Shapes

__all__ = ["Ladder", "Ratios", "Sensitivity", "Shapes", "SpeedModel"]
