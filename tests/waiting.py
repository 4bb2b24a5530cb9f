"""Waiting for what other processes do."""

import time


def wait_for(condition, seconds=60):
    """The first true value of ``condition()``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError("it did not come to pass")
