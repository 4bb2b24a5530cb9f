"""The most memory that this process has held."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """Returns the bytes resident at the worst moment since this program began.

    On Linux ``getrusage`` counts what the process that started this one held until then, which may
    be a workflow of thousands of jobs; the kernel's status of this process does not.
    """
    status = Path("/proc/self/status")
    if status.exists() and (peak := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(peak[1]) * 1024
    maximum = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return maximum if sys.platform == "darwin" else maximum * 1024
