"""Kills a command of moelaws by SIGKILL at one of its renames, links or unlinks.

Python imports this file when it starts, if its folder is on PYTHONPATH. MOELAWS_KILL is
WORDS:N, such as make fits:2: the process of the command that begins with these words dies at the
N-th such step, from 0. With
MOELAWS_DISK no file that a command writes grows beyond so many bytes.
"""

import os
import resource
import signal
import sys
from pathlib import Path

COMMAND_LINE = Path(sys.argv[0] if sys.argv else "").name == "moelaws"
sys.dont_write_bytecode |= COMMAND_LINE  # a compiled module is none of its files

if "MOELAWS_DISK" in os.environ and COMMAND_LINE:
    most = int(os.environ["MOELAWS_DISK"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

if "MOELAWS_KILL" in os.environ and COMMAND_LINE:
    command, _, point = os.environ["MOELAWS_KILL"].partition(":")
    left = [int(point)]

    def kill(event, words):
        if event in ("os.rename", "os.link", "os.remove"):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    if " ".join(sys.argv[1:]).startswith(f"{command} "):
        sys.addaudithook(kill)
