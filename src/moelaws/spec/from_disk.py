"""The package's only way to take a whole file into memory: a plain file that is not too large."""

import os
import stat
from pathlib import Path

from moelaws.spec.errors import UserError, quoted

LARGEST = 2**30  # bytes of a file, and of what it unpacks to


def read_bytes(path: Path | str, largest: int = LARGEST) -> bytes:
    """Returns the content of the file at ``path``, which may have ``largest`` bytes.

    It refuses a pipe or a device, which may never end, and raises OSError if there is no file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else a pipe waits for a writer
    except ValueError:
        raise UserError(f"{quoted(os.fspath(path))}: a path cannot have a NUL in it") from None
    try:
        about = os.fstat(descriptor)
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
            raise UserError(f"{path} is a pipe or a device; write what it gives to a file first")
        refuse_large(about.st_size, path, largest)
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            data: bytes = file.read()
        return data
    finally:
        os.close(descriptor)


def refuse_large(size: int, what: object, largest: int = LARGEST) -> None:
    """Refuses what has more bytes than ``largest``, before any memory is taken for it."""
    if size > largest:
        raise UserError(
            f"{what} has {size / 1e6:,.0f} MB; at most {largest / 1e6:,.0f} MB are read"
        )
