"""A disk that is almost full."""

import resource
import sys
from contextlib import contextmanager
from unittest import mock


@contextmanager
def files_of_at_most(size):
    """No file grows beyond ``size`` bytes in this process; no compiled module is cut short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with mock.patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
