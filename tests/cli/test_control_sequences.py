"""What others wrote commands no terminal."""

import os
import pty
import subprocess
import sys

import pytest

TITLE = "\x1b]0;another title\x07"  # by which a program renames a terminal's window


def ended(*words, terminal):
    """Returns the exit code of a command, and what it wrote to a terminal or to a pipe."""
    command = [sys.executable, "-m", "moelaws", *words]
    if not terminal:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout
    ours, theirs = pty.openpty()
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 4096):
            text += chunk
    except OSError:  # the other end is closed
        os.close(ours)
    return done.returncode, text


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("query", f"SELECT '{TITLE}' AS \"{TITLE}\""), 0),
        (("query", "--csv", f"SELECT '{TITLE}' AS \"{TITLE}\""), 0),
        (("eval", TITLE), 2),
        (("show", TITLE), 2),
        ((TITLE,), 2),
    ],
)
def test_control_sequences_are_shown_and_not_obeyed(words, code, terminal):
    status, text = ended(*words, terminal=terminal)
    assert status == code, text
    assert b"another title" in text
    assert not set(text) & {0x1B, 0x07}
