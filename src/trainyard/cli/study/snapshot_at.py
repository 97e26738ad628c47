"""`simulate --snapshot-at`: write the state before a decision, as a file that `trainyard plan` reads."""

from __future__ import annotations

import json
from math import nan
from typing import TYPE_CHECKING

from trainyard.errors import InputError

if TYPE_CHECKING:
    from trainyard.core.instructions import Ended
    from trainyard.core.watcher import Watcher
    from trainyard.state.snapshot import Snapshot


class SnapshotAt:
    """A watcher that writes one snapshot, and tells another watcher all it is told itself."""

    def __init__(self, at: str, path: str, other: Watcher | None) -> None:
        try:
            at_s = float(at)
        except ValueError:
            at_s = nan
        if not at_s >= 0:
            raise InputError(f"--snapshot-at {at}: give seconds from the start, 0 or more, such as 60 or 0.5")
        self.at_s, self.path, self.other = at_s, path, other
        from trainyard.files.output import prepare_out_file

        prepare_out_file(path)
        self._last_s: float | None = None
        self._written = False

    def deciding(self, snapshot: Snapshot) -> None:
        """Keep the snapshot of the first decision at this time or later."""
        self._last_s = snapshot.now_s
        if not self._written and snapshot.now_s >= self.at_s:
            from trainyard.core.saving import snapshot_record
            from trainyard.files.output import write_text_atomic

            text = json.dumps(snapshot_record(snapshot), ensure_ascii=False, allow_nan=False) + "\n"
            write_text_atomic(self.path, text)  # at once, for whatever becomes of the run
            self._written = True
        if self.other is not None:
            self.other.deciding(snapshot)

    def ended(self, end: Ended) -> None:
        """Pass it on."""
        if self.other is not None:
            self.other.ended(end)

    def end(self) -> None:
        """Say so if there was no decision so late."""
        if not self._written:
            at = None if self._last_s is None else f"{self._last_s:g} s"
            last = f"the last decision was at {at}" if at else "there was no decision"
            raise InputError(f"--snapshot-at {self.at_s:g}: {last}; give an earlier time")
