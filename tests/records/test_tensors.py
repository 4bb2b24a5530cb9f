"""What a killed process leaves of a file of tensors goes, whichever name its library gave it."""

import os
import signal
import subprocess
import sys

from moelaws.files.leftovers import sweep

WRITE = """
import sys
from pathlib import Path
import torch
from moelaws.records.tensors import write_tensors
while True:
    write_tensors(Path(sys.argv[1]), {"a": torch.zeros(1 << 23)}, {})
"""


def test_nothing_stays_of_one_killed_within_the_library(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITE, tmp_path / "latest.safetensors"]) as writer:
        half_written = []
        while not half_written:
            assert writer.poll() is None
            writer.send_signal(signal.SIGCONT)
            while not list(tmp_path.rglob(".tmp*")):  # so the library calls it
                assert writer.poll() is None
            writer.send_signal(signal.SIGSTOP)
            os.waitpid(writer.pid, os.WUNTRACED)
            half_written = list(tmp_path.rglob(".tmp*"))
        writer.kill()
    sweep(tmp_path)
    assert set(os.listdir(tmp_path)) <= {"latest.safetensors"}
