"""Tables and control sequences: what stands in a terminal."""

import os
import pty
import subprocess
import sys

import pytest

from moelaws.cli.common import table_text


def test_a_table_folds_its_texts_at_the_terminal_and_a_pipe_has_them_whole(monkeypatch):
    rows = [("allocation.elasticity", "a title of so many words that it is long", 1.5)] * 2
    monkeypatch.delenv("COLUMNS", raising=False)
    assert max(map(len, table_text(("law", "title", "x"), rows).splitlines())) > 60
    monkeypatch.setenv("COLUMNS", "45")
    text = table_text(("law", "title", "x"), rows)
    assert max(map(len, text.splitlines())) <= 45
    assert text.count("allocation.elasticity ") == 2
    words = [word for line in text.splitlines()[1:] for word in line.split()]
    assert words.count("long") == words.count("1.5") == 2


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
    [(("query", f"SELECT '{TITLE}' AS \"{TITLE}\""), 0), (("eval", TITLE), 2), ((TITLE,), 2)],
)
def test_control_sequences_are_shown_and_not_obeyed(words, code, terminal):
    status, text = ended(*words, terminal=terminal)
    assert status == code, text
    assert b"another title" in text
    assert not set(text) & {0x1B, 0x07}
