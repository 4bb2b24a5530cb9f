"""A disk that is almost full."""

import resource
from contextlib import contextmanager


@contextmanager
def files_of_at_most(size):
    """No file grows beyond ``size`` bytes in this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
