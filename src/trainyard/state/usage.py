"""Usage: GPU-seconds of every tenant and of each of its users, of which half is forgotten in a half-life.

It follows from what jobs were given alone. While an account holds g GPUs, with l = ln 2 / half-life,

    U(t) = g / l + (U(t0) - g / l) e^(-l (t - t0)),

so that it has to be written to only when g changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, expm1, log
from typing import Any, NamedTuple

from trainyard.model.job import Job

WEEK_S = 7 * 86400.0
FEW = 1024  # accounts are no burden
FORGOTTEN = 1e-3  # GPU-seconds that are as good as none
Name = tuple[str, ...]  # (tenant,) or (tenant, user)


class Account(NamedTuple):
    """GPU-seconds that were counted at a moment, and the GPUs that are held from then on."""

    gpu_s: float = 0.0
    since_s: float = 0.0
    gpus: int = 0


class Usage:
    """The accounts of all tenants and users that have held something, until it is forgotten."""

    def __init__(self, half_life_s: float = WEEK_S) -> None:
        self.half_life_s = half_life_s
        self.accounts: dict[Name, Account] = {}

    @property
    def pace(self) -> float:
        """The part that is forgotten, per second."""
        return log(2) / self.half_life_s

    def gpu_s(self, name: Name, now_s: float) -> float:
        """Return what is left of an account now."""
        account = self.accounts.get(name)
        return 0.0 if account is None else self._at(account, now_s)

    def gpus(self, name: Name) -> int:
        """Return the GPUs that an account holds."""
        return self.accounts[name].gpus if name in self.accounts else 0

    def change(self, job: Job, now_s: float, gpus: int, gpu_s: float = 0.0) -> None:
        """The job holds so many more GPUs from now on (fewer: below 0), and has used some more so far."""
        accounts = self.accounts
        for name in names_of(job):
            account = accounts.get(name)
            if account is None:
                account = Account(0.0, now_s)
                if len(accounts) >= FEW and not len(accounts) & (len(accounts) - 1):
                    self._prune(now_s)
            used = self._at(account, now_s) + gpu_s
            accounts[name] = Account(used, max(now_s, account.since_s), account.gpus + gpus)

    def _prune(self, now_s: float) -> None:
        """Drop who holds nothing and of whose usage next to nothing is left.

        It is done at powers of two, which follow from the accounts alone: a fork and a replay do the same.
        """
        over = [name for name, a in self.accounts.items() if not a.gpus and self._at(a, now_s) < FORGOTTEN]
        for name in over:
            del self.accounts[name]

    def forget_by(self, half_life_s: float, now_s: float) -> None:
        """From now on half is forgotten in this time."""
        for name, account in self.accounts.items():
            since_s = max(now_s, account.since_s)
            self.accounts[name] = Account(self._at(account, now_s), since_s, account.gpus)
        self.half_life_s = half_life_s

    def _at(self, account: Account, now_s: float) -> float:
        x = -self.pace * max(now_s - account.since_s, 0.0)
        return account.gpu_s * exp(x) - account.gpus / self.pace * expm1(x)

    def copy(self) -> Usage:
        """Return an independent copy."""
        twin = Usage(self.half_life_s)
        twin.accounts = self.accounts.copy()
        return twin

    def record(self) -> dict[str, Any]:
        """Return it as data for a file; `restored` makes the same of it again."""
        accounts = [{"name": list(name), **account._asdict()} for name, account in self.accounts.items()]
        return {"half_life_s": self.half_life_s, "accounts": accounts}


def restored(record: Mapping[str, Any]) -> Usage:
    """Take in the usage of an earlier life."""
    usage = Usage(record["half_life_s"])
    for entry in record["accounts"]:
        usage.accounts[tuple(entry["name"])] = Account(entry["gpu_s"], entry["since_s"], entry["gpus"])
    return usage


def names_of(job: Job) -> tuple[Name, Name]:
    """The accounts that a job is counted in: its tenant's, and its user's in it."""
    return (job.tenant,), (job.tenant, job.user)
