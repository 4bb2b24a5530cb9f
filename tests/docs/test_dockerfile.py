"""The Dockerfile, which no engine builds here: its instructions are Docker's, its sources exist."""

import re

from repository import REPOSITORY

INSTRUCTIONS = {"FROM", "RUN", "WORKDIR", "COPY", "CMD"}


def test_the_image_is_made_of_files_that_exist_and_of_the_tested_lock():
    text = re.sub(r"^#.*\n", "", (REPOSITORY / "Dockerfile").read_text(), flags=re.M)
    steps = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line]
    assert {name for name, _ in steps} == INSTRUCTIONS
    assert steps[0][0] == "FROM"
    for words in (rest.split() for name, rest in steps if name == "COPY"):
        for source in words[:-1]:
            assert (REPOSITORY / source).exists(), source
    assert any("-r envs/cpu.lock" in rest for name, rest in steps if name == "RUN")
    (python,) = re.findall(r"^python:(3\.\d+)-slim$", steps[0][1])
    assert python in (REPOSITORY / "envs/cpu.lock").read_text()  # one that the lock knows
