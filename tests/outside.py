"""Tools of others, which judge what moelaws writes and lie in a folder of their own.

pip install --no-deps --target TOOLS -r envs/crate.txt; MOELAWS_CRATE_TOOLS=TOOLS pytest -m slow
"""

import os
import subprocess
import sys

import pytest


def run_outside(module, *words, check=True):
    """A process of Python in which ``module`` can be imported; without it the test is skipped."""
    if not (tools := os.environ.get("MOELAWS_CRATE_TOOLS")):
        pytest.skip(f"{module} lies in no folder MOELAWS_CRATE_TOOLS")
    env = {**os.environ, "PYTHONPATH": tools}
    line = [sys.executable, *map(str, words)]
    return subprocess.run(line, env=env, capture_output=True, text=True, check=check)
