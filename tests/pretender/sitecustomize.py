"""Lets a command that asks for a GPU compute on the CPU, for machines without one.

Python imports this file when it starts, if its folder is on PYTHONPATH. It acts where
MOELAWS_PRETEND is set.
"""

import os
import sys
from pathlib import Path

COMMAND_LINE = Path(sys.argv[0] if sys.argv else "").name == "moelaws"

COMPUTES = COMMAND_LINE and sys.argv[1:2] in (["train"], ["bench"], ["probe"])
if "MOELAWS_PRETEND" in os.environ and COMPUTES:
    from moelaws.training import device

    device.choose_device = lambda name: "cpu"
