"""Speed: how many samples a second does a job train? One file per physical effect, composed in `model`."""

from trainyard.model.speed.corrected import Corrected
from trainyard.model.speed.model import SpeedModel
from trainyard.model.speed.ratios import Ratios
from trainyard.model.speed.sensitivity import Ladder, Sensitivity
from trainyard.model.speed.shapes import Shapes

__all__ = ["Corrected", "Ladder", "Ratios", "Sensitivity", "Shapes", "SpeedModel"]
