"""The page by which others make the verdicts of a sweep again."""

import json
import re
import shlex

import pytest

from repository import REPOSITORY

pytestmark = pytest.mark.slow


def test_its_commands_make_the_verdicts_and_its_numbers_are_theirs(finished):
    done = finished.moelaws("claims", "--artifact")
    assert done.returncode == 0, done.stderr
    commands = re.findall(r"^\$ (snakemake .*)$", done.stdout, re.M)
    _, *words = shlex.split(commands[0])
    assert finished.planned(*words) == {}
    verdicts = json.loads((finished.root / words[-1]).read_text())
    rows = [line for line in done.stdout.splitlines() if line.count("|") == 7]
    for claim, row in zip(verdicts["claims"], rows[2:], strict=True):
        assert (claim["statement"] in row, claim["verdict"] in row) == (True, True)
        if claim["low"] is not None:
            assert f"| {claim['value']:.4g} | {claim['low']:.4g} to {claim['high']:.4g} |" in row
    seconds = sum(json.loads(p.read_text())["wall_seconds"] for p in finished.summaries())
    runs = f"{len(finished.summaries())} runs, {seconds / 60:.3g} minutes"
    assert runs in done.stdout


def test_the_installation_is_that_of_the_readme():
    page = (REPOSITORY / "src/moelaws/claims/artifact.md").read_text()
    line = re.search(r"`(python3 -m venv .*? -e \.)`", page)[1]
    assert line in (REPOSITORY / "README.md").read_text().replace(" --no-compile", "")
