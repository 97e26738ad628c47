"""Arrays in a file: the safetensors format, of which little is needed.

Eight bytes say how long the header is; the header is JSON: dtype, shape and place of every array by name, and
`__metadata__`, texts by name; then come the arrays themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainyard.errors import InputError
from trainyard.files.output import write_bytes_atomic
from trainyard.files.reading import StrPath, read_bytes

DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
Arrays = Mapping[str, np.ndarray[Any, Any]]


def save_tensors(path: StrPath, arrays: Arrays, metadata: Mapping[str, str]) -> None:
    """Write arrays and texts; the same ones give the same bytes."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    parts, at = [], 0
    for name, array in sorted(arrays.items()):
        data = np.ascontiguousarray(array).tobytes()
        place = [at, at + len(data)]
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    write_bytes_atomic(path, b"".join([len(text).to_bytes(8, "little"), text, *parts]))


def load_tensors(path: StrPath) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """Read arrays and texts."""
    data, where = read_bytes(path), str(path)
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        metadata = {str(key): str(text) for key, text in header.pop("__metadata__", {}).items()}
        arrays = {name: _array(data, start, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            "this is not a whole safetensors file; name one that 'trainyard train' wrote", where=where
        ) from None
    return arrays, metadata


def _array(data: bytes, start: int, entry: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    begin, end = entry["data_offsets"]
    dtype: np.dtype[Any] = DTYPES[entry["dtype"]]
    array: np.ndarray[Any, Any] = np.frombuffer(data[start + begin : start + end], dtype=dtype)
    return array.reshape(entry["shape"])
