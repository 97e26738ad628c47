"""Commands and controllers of different versions: one minor version either way works."""

from __future__ import annotations

from trainyard._version import __version__
from trainyard.errors import ControllerError

NEAR = 1  # minor versions


def check_version(theirs: str, ours: str = __version__) -> None:
    """Refuse a controller that is too old or too new for this command."""
    if not theirs:
        raise ControllerError("who answers is no controller of trainyard: its answer has no version", "error")
    (major, minor), (own_major, own_minor) = _parts(theirs), _parts(ours)
    if major != own_major or abs(minor - own_minor) > NEAR:
        told, own = f"{major}.{minor}", f"{own_major}.{own_minor}"
        raise ControllerError(
            f"controller {told}, this command {own}: install trainyard=={told}.*", "version"
        )


def stamped(message: str, theirs: str, ours: str = __version__) -> str:
    """Add both versions to an error of a controller of another one: it may not know what was asked."""
    if not theirs or _parts(theirs) == _parts(ours):
        return message
    return f"{message} (controller {theirs}, this command {ours})"


def _parts(version: str) -> tuple[int, int]:
    try:
        major, minor, *_ = version.split(".")
        return int(major), int(minor)
    except ValueError:
        raise ControllerError(
            f"controller '{version}': no version of trainyard is written so", "version"
        ) from None
