"""A process's peak of memory is its own, and what one left that was killed goes."""

import os
import signal
import subprocess
import sys

from moelaws.files.leftovers import sweep

OWN = "from moelaws.records.memory import peak_memory; {0}print(peak_memory())"
HELD = "held = bytearray(b'x' * 400_000_000); "


def peak_of(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_what_it_holds_shows():
    assert 4e8 < peak_of(OWN.format(HELD)) < 9e8


def test_what_the_process_held_that_started_it_does_not():
    child = f"subprocess.run([sys.executable, '-c', {OWN.format('')!r}], check=True)"
    assert peak_of(f"import subprocess, sys; {HELD}{child}") < 2e8


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
