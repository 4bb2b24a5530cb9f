"""The code blocks of a page in docs/, and its commands run as they stand.

In a `console` block the lines with `$` are commands and the others must be in their output, in that
order, with `...` for anything. A comment `not run: why` before a block leaves it out; `line: NAME`
marks what CI runs.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from repository import moelaws

BLOCK = re.compile(
    r"^(<!-- (?:not run|line): \w[^\n]*-->\n)?^```(python|yaml|toml|console)\n(.*?)^```$",
    re.M | re.S,
)


def blocks(page):
    """Language and text of the blocks that are to be run."""
    matches = BLOCK.findall(page.read_text())
    return [(language, text) for left_out, language, text in matches if not left_out]


def run(root, *command):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def answered(root, command):
    """What a command prints; a plain ``moelaws ...`` is called in this process."""
    words = shlex.split(command, comments=True)
    if words[0] != "moelaws" or {*"|&;<>$`"} & {*command}:
        return run(root, "bash", "-c", command)
    done = moelaws(*words[1:], cwd=root, together=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def check_console(root, text, answer=lambda root, command: run(root, "bash", "-c", command)):
    _, *parts = re.split(r"^\$ ", text, flags=re.M)
    assert parts, f"a block without a command: {text}"
    for part in parts:
        command, *expected = part.rstrip().splitlines()
        output = answer(root, command)
        lines = iter(output.splitlines())
        for line in expected:
            if line != "...":
                pattern = pattern_of(line)
                assert any(pattern.fullmatch(got) for got in lines), f"{command}: {line}\n{output}"


def pattern_of(line):
    """A line as shown, however it is spaced, with `...` for anything."""
    words = [re.escape(word).replace(re.escape("..."), ".*") for word in line.split()]
    return re.compile(r"\s*" + r"\s+".join(words) + r"\s*")
