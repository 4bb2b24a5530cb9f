"""A process's peak is its own, whoever started it."""

import subprocess
import sys

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
