"""Reading the bytes and the text of an input file, with one-line errors for all that can go wrong."""

from __future__ import annotations

import difflib
import gzip
import os
import sys
import zlib
from pathlib import Path

from trainyard.errors import InputError

GZIP_MAGIC = b"\x1f\x8b"
StrPath = str | os.PathLike[str]


def name_of(path: StrPath) -> str:
    """Name a file in messages; "-" is the standard input."""
    return "standard input" if str(path) == "-" else str(path) or "''"


def read_text(path: StrPath, wanted: str = "data") -> str:
    """Return the text of a file, gzip or plain ("-": standard input), that should hold what is `wanted`."""
    where = name_of(path)
    text = _decoded(_unzipped(_bytes(path, where), where), where)
    if not text.strip():
        raise InputError(f"the file is empty; it must hold {wanted}", where=where)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("this is binary data; it must be text (UTF-8)", where=where, line=line)
    return text


def read_bytes(path: StrPath) -> bytes:
    """Return the bytes of a file ("-": standard input)."""
    return _bytes(path, name_of(path))


def _bytes(path: StrPath, where: str) -> bytes:
    if str(path) == "-" and sys.stdin is None:
        raise InputError("it is closed; pipe a file into it or name one", where=where)
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no such file{_near_files(Path(path))}", where=where) from None
    except IsADirectoryError:
        raise InputError("this is a directory; name a file", where=where) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}; check the path", where=where) from None


def _near_files(path: Path) -> str:
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f"; its directory '{path.parent}' does not exist either"
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; did you mean '{path.with_name(near[0])}'?" if near else "; check the path"


def _unzipped(data: bytes, where: str) -> bytes:
    if not data.startswith(GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except EOFError:
        raise InputError("the gzip file is truncated; copy or download it again", where=where) from None
    except (OSError, zlib.error) as error:
        raise InputError(
            f"the gzip file is damaged ({error}); copy or download it again", where=where
        ) from None


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02x} is not UTF-8 text; it must be a UTF-8 text file"
        raise InputError(what, where=where, line=line) from None
