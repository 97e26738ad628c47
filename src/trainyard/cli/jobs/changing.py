"""What `cancel`, `hold` and `release` have in common."""

from __future__ import annotations

from typing import Any

from trainyard.cli.client.link import Link
from trainyard.cli.shown.as_json import print_json


def change(link: Link, name: str, verb: str, as_json: bool, **body: Any) -> None:
    """Have a job changed, and say what it is now and what it was."""
    before = link.job(name)
    after = link.post(f"/jobs/{before['job_id']}/{verb}", body)
    if as_json:
        print_json(after)
    else:
        print(f"{after['job_id']} {after['state']} (was {before['state']})")
