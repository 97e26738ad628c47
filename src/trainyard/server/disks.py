"""On which kind of disk does a file lie? SQLite's log needs the shared memory of one host."""

from __future__ import annotations

import os
from pathlib import Path

from trainyard.errors import InputError

MOUNTS = Path("/proc/self/mounts")
SHARED = ("nfs", "lustre", "gpfs", "cifs", "smb", "ceph", "beegfs", "glusterfs", "fuse.sshfs", "afs", "9p")


def file_system_of(path: Path, mounts: Path = MOUNTS) -> str:
    """Return the kind of file system that a path is on; "" if nobody says."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real, found, kind = os.path.realpath(path), "", ""
    for line in lines:
        point, its_kind = _unescaped(line.split(" ")[1]), line.split(" ")[2]
        below = real == point or real.startswith(point.rstrip("/") + "/")
        if below and len(point) >= len(found):  # a later mount covers an earlier one
            found, kind = point, its_kind
    return kind


def _unescaped(text: str) -> str:
    """Mount points have blanks and the like written as \\040."""
    head, *rest = text.split("\\")
    return head + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)


def refuse_shared_disk(path: Path, mounts: Path = MOUNTS) -> None:
    """Refuse SQLite where another host could write too."""
    kind = file_system_of(path, mounts)
    if kind.startswith(SHARED):
        shown = str(path).replace(str(Path.home()), "~", 1) if path.is_relative_to(Path.home()) else str(path)
        raise InputError(f"{shown} is on {kind}; give --data on a local disk or --store postgresql")
