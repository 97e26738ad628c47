"""Python's search for reference cycles, put off while millions of objects are made that have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Do not look for cycles meanwhile, nor first thing afterwards: what was made counts as old already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # from "never looked at" to the oldest generation
        gc.enable()
