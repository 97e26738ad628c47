"""Writing output files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainyard.errors import InputError
from trainyard.files.reading import StrPath


def write_text_atomic(path: StrPath, text: str) -> None:
    """Write a UTF-8 text file whole or not at all."""
    write_bytes_atomic(path, text.encode())


def write_bytes_atomic(path: StrPath, data: bytes) -> None:
    """Write a file whole or not at all: to a temporary neighbour first, which then takes its name."""
    target = prepare_out_file(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a pipe or a device has no neighbour that could take its place
        else:
            _write_and_rename(target, data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", where=str(path)) from None


def prepare_out_file(path: StrPath) -> Path:
    """Refuse a file that cannot be written for want of a directory, and return where it really is."""
    target = Path(os.path.realpath(path))
    try:
        if not target.parent.exists():
            raise InputError(f"there is no directory '{Path(path).parent}'; create it first", where=str(path))
        if target.is_dir():
            raise InputError("this is a directory; name a file to write", where=str(path))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", where=str(path)) from None
    return target


def _write_and_rename(target: Path, data: bytes) -> None:
    temporary = _unused_name(target.parent)
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _unused_name(directory: Path) -> Path:
    return directory / f".{uuid.uuid4().hex}.tmp"


@contextmanager
def out_dir(path: StrPath) -> Iterator[Path]:
    """Create an output directory; a failure takes away the folders that were made for it and are empty."""
    inner_first = (Path(path), *Path(path).parents)
    missing = [directory for directory in inner_first if not os.path.exists(directory)]
    try:
        yield prepare_out_dir(path)
    except BaseException:
        with contextlib.suppress(OSError):  # of the first that is not empty, or was never made
            for directory in missing:
                directory.rmdir()
        raise


def prepare_out_dir(path: StrPath) -> Path:
    """Create an output directory and see that files can be written into it."""
    if not str(path):
        raise InputError("the output directory has no name; give one such as out")
    directory = Path(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = _unused_name(directory)
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        what = "this is a file, or below one; name a directory for the output"
        raise InputError(what, where=str(path)) from None
    except OSError as error:
        what = f"no files can be written here: {error.strerror or error}; name another directory"
        raise InputError(what, where=str(path)) from None
    return directory
