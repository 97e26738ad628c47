"""A real PostgreSQL for tests: in a folder of its own, on a free port of this machine, gone at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MISSING = "needs PostgreSQL"
USER = "test"
UNSAFE = ("fsync=off", "full_page_writes=off")  # it need not survive a power cut, but a crash of its own
TRIES = 3  # somebody may take the port before we do


def find_program(name: str) -> str | None:
    """Return where a program of PostgreSQL is; distributions keep them apart."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(versions[-1]) if versions else None)


def is_there() -> bool:
    """Whether this machine has PostgreSQL."""
    return all(find_program(name) for name in ("initdb", "pg_ctl", "postgres"))


class Postgres:
    """A server with any number of databases."""

    def __init__(self) -> None:
        """Make an empty server and start it."""
        self.folder = Path(tempfile.mkdtemp(prefix="ty-pg-"))
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(self.folder, "nobody", "nogroup")
        self.port, self._made = 0, 0
        try:
            self._run("initdb", "-A", "trust", "-U", USER, "--no-sync", "-E", "UTF8", "--locale=C")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _run(self, program: str, *words: str) -> None:
        path = find_program(program)
        assert path is not None, MISSING
        # pg_ctl hands its output on to the server: a pipe would never end.
        root = os.geteuid() == 0
        with open(self.folder / "said", "w+b") as said:
            done = subprocess.run(
                [path, "-D", str(self.folder / "data"), *words],
                stdout=said,
                stderr=said,
                cwd=self.folder,
                check=False,
                user="nobody" if root else None,
                group="nogroup" if root else None,
                extra_groups=[] if root else None,
            )
            if done.returncode:
                said.seek(0)
                raise RuntimeError(f"{program}: {said.read().decode()}")

    def start(self) -> None:
        """Start it, always on the same port once it has one."""
        for left in reversed(range(TRIES)):
            port = self.port or _free_port()
            options = ["-c listen_addresses=127.0.0.1", f"-p {port}", f"-k {self.folder}"]
            options += [f"-c {setting}" for setting in UNSAFE]
            try:
                self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", " ".join(options), "start")
            except RuntimeError:
                if not left:
                    raise
                continue
            self.port = port
            return

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` disconnects everybody, `immediate` is like a crash."""
        self._run("pg_ctl", "-m", mode, "-w", "stop")

    def new_database(self) -> str:
        """Make an empty database; return its URL."""
        import psycopg

        self._made += 1
        name = f"store{self._made}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{name}"

    def _address(self, name: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        """Stop it and leave nothing."""
        try:
            self.stop("immediate")
        except RuntimeError:
            pass  # it was stopped already
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL for all tests."""
    if not is_there():
        pytest.skip(MISSING)
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store: each test with it runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()
