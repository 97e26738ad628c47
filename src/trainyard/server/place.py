"""Where a controller keeps its things, and how commands of the same user find it: the data directory."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from trainyard.errors import InputError

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600
OF_OTHERS = 0o022  # they may write
SERVER_FILE, TOKEN_FILE, STORE_FILE = "server.json", "token", "store.db"


@dataclass(frozen=True, slots=True)
class ServerFile:
    """What `server.json` says of the controller that runs."""

    url: str
    host: str  # the machine
    pid: int
    token: str
    version: str
    store_id: str
    epoch: int
    started_s: float


def data_directory(given: str | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the data directory: as given, else $TRAINYARD_DATA, else where this user's data lie."""
    if given is not None and not given:
        raise InputError("--data: the directory has no name; give one such as ~/trainyard")
    chosen = given or environment.get("TRAINYARD_DATA")
    if chosen:
        return Path(chosen).expanduser().absolute()
    home = environment.get("XDG_DATA_HOME", "")
    parent = Path(home) if home.startswith("/") else Path("~/.local/share").expanduser()
    return parent / "trainyard"


def user_name() -> str:
    """Return who runs this; a container may know no more than a number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def prepare(directory: Path) -> None:
    """Make the data directory, for this user alone."""
    try:
        directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        trial = directory / f".trial.{os.getpid()}"
        trial.touch()
        trial.unlink()
        about = directory.stat()
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"--data {directory}: this is a file, or below one; name a directory") from None
    except OSError as error:
        what = f"no files can be written here: {error.strerror or error}; name another directory"
        raise InputError(f"--data {directory}: {what}") from None
    if about.st_uid != os.geteuid() or about.st_mode & OF_OTHERS:
        what = "others could change what is run from here; name a directory of your own (chmod go-w)"
        raise InputError(f"--data {directory}: {what}")


def keep_token(directory: Path) -> str:
    """Return the owner's token; it stays the same over restarts."""
    path = directory / TOKEN_FILE
    try:
        path.chmod(PRIVATE_FILE)
        token = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, ValueError):
        token = ""
    if not token:
        token = secrets.token_urlsafe(32)
        write_private(path, token + "\n")
    return token


def write_server_file(directory: Path, about: ServerFile) -> None:
    """Tell this user's commands where the controller is."""
    write_private(directory / SERVER_FILE, json.dumps(asdict(about), indent=1) + "\n")


def read_server_file(directory: Path) -> ServerFile | None:
    """Return what is said of a controller; None if none runs, or none ended as it should."""
    path = directory / SERVER_FILE
    try:
        return ServerFile(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, TypeError):
        raise InputError(
            "this is no server.json of this version; is it of another one?", where=str(path)
        ) from None


def remove_server_file(directory: Path, pid: int) -> None:
    """The controller of this process is gone; one that has taken over keeps its own file."""
    with contextlib.suppress(InputError):  # what cannot be read is not ours
        told = read_server_file(directory)
        if told is not None and told.pid == pid:
            (directory / SERVER_FILE).unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user reads, whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "w", encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
