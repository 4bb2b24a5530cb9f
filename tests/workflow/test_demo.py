"""Reruns tell the truth, on everything that the studies make.

The tests look at a finished sweep of all studies: the one in the folder MOELAWS_DEMO, whose
commands ran with the recorder (tests/recorder), or else one of simulated losses that is made here
in some minutes.
"""

import base64
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from repository import copy_repository
from sweep_copy import Copy

pytestmark = pytest.mark.slow

SIMULATED = ("--config", "source=simulated", "tier=demo", "studies=all")
# What the command line itself loads: options, progress bars, the project and its studies' files,
# how a file is written and read, and what tells the code behind an entry for the record of what
# is made. The entry itself is a parameter of its rule, and Snakemake compares it by content.
COMMAND_LINE = (
    *("__main__.py", "cli/", "spec/", "studies/__init__.py"),
    *("records/__init__.py", "files/atomic.py", "files/layout.py", "records/progress.py"),
    *("records/batches.py", "files/leftovers.py", "records/memory.py", "files/seal.py"),
    *("records/code.py", "workflow/__init__.py", "workflow/code.py"),
    # Which GPUs a command holds while it runs.
    *("gpus/__init__.py", "gpus/listing.py"),
    # A contest's entry is checked before its fits: this refuses, and decides no number.
    *("workflow/check.py", "tables/mapping.py"),
    # So are entries left out whose imported tables are absent: the workflow asks for none of them.
    *("tables/__init__.py", "tables/at_hand.py"),
)
# To collect a table a grid is expanded; what comes of that, the runs, is a parameter too.
EXPANSION = ("grids/", "corpus/", "accounting/", "laws/", "records/")


class Demo(Copy):
    """A finished sweep of all studies, and the words of the Snakemake call that made it."""

    def __init__(self, root, words):
        super().__init__(root)
        self.words = words

    @property
    def environment(self):
        return super().environment | {
            "PYTHONPATH": f"{self.root / 'tests/recorder'}:{self.root / 'src'}",
            "MOELAWS_LOADED": str(self.loaded),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    @property
    def loaded(self):
        return self.root / "results/loaded"

    def jobs(self):
        """Output -> what Snakemake has on record of the job that made it."""
        jobs, folder = {}, self.root / ".snakemake/metadata"
        for path in folder.rglob("*"):
            if path.is_file():
                name = path.relative_to(folder).as_posix().replace("/@", "").removeprefix("@")
                jobs[base64.b64decode(name).decode()] = json.loads(path.read_text())
        return jobs

    def commands(self):
        """The words of each command that wrote an output, and the package's files it loaded.

        Of several calls with other studies that wrote one page, the last, for Snakemake has its
        job on record.
        """
        package, last = self.root / "src/moelaws", {}
        for path in sorted(self.loaded.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
            record = json.loads(path.read_text())
            if (words := record["words"])[0] != "train" and (out := output(words)):
                last[out] = record
        for record in last.values():
            files = {Path(file).resolve() for file in record["files"]}
            yield record["words"], {file.relative_to(package).as_posix() for file in files}


def output(words):
    """What a command writes, by its own words; None where they name nothing."""
    option = "--marker" if words[0] in ("probe", "bench") else "--out"
    return words[words.index(option) + 1] if option in words else None


def entries(text):
    """(kind, study, name) of each log that a text of Snakemake names."""
    return set(re.findall(r"results/logs/\S*?/(\w+)/(\w+)/(\w+)\.log", text))


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    if root := os.environ.get("MOELAWS_DEMO"):
        return Demo(Path(root), ("--config", "studies=all"))
    root = tmp_path_factory.mktemp("demo")
    copy_repository(root)
    demo = Demo(root, SIMULATED)
    demo.loaded.mkdir(parents=True)
    demo.snakemake(*demo.words)
    return demo


def test_each_command_loads_only_what_its_rule_declares(demo):
    jobs, package = demo.jobs(), demo.root / "src/moelaws"
    checked, undeclared = Counter(), {}
    for words, files in demo.commands():
        if words[0] == "corpus":  # like a training's, its code is no input (docs/concepts.md)
            continue
        inputs = jobs[output(words)]["input"]
        declared = {(demo.root / file).resolve() for file in inputs}
        own = COMMAND_LINE + (EXPANSION if words[:2] == ["make", "runs"] else ())
        loaded = {name for name in files if not name.startswith(own)}
        if more := sorted(name for name in loaded if package / name not in declared):
            undeclared[" ".join(words[:2])] = more
        checked[words[words[0] == "make"]] += 1
    assert undeclared == {}
    assert {"derived", "fits", "pictures", "claims", "explore"} <= set(checked)
    assert checked["derived"] > 20


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("studies/sectional/laws/cost.py", ("drawn", "sectional", "draw")),
        ("studies/generalization/laws/routing.py", ("derived", "generalization", "runs")),
    ],
)
def test_a_constant_of_a_law_reruns_exactly_what_evaluates_it(demo, file, known):
    """What loads the law, by the record of each command, and what is made of that."""
    jobs = demo.jobs()
    stale = {output(words) for words, files in demo.commands() if file in files}
    while more := {out for out, job in jobs.items() if stale & set(job["input"])} - stale:
        stale |= more
    expected = entries(" ".join(log for out in stale for log in jobs[out]["log"]))
    with demo.edited(f"src/moelaws/{file}", r"\Z", "\nCHANGED = 1\n"):
        planned = entries(demo.snakemake("-n", "--quiet", "host", *demo.words).stdout)
    assert planned == expected
    assert known in planned


def test_the_demos_models_answer_better_than_by_guessing(demo):
    path = demo.root / "results/demo/derived/sparsity/downstream.parquet"
    if not path.exists():
        pytest.skip("losses are simulated here: no model can be asked")
    scores = pd.read_parquet(path).set_index("skill")
    # All models answer the same questions, so their mean is taken to be no surer than one of them.
    # A single task says it of models of so few tokens by two to three standard errors only.
    own = scores.loc[["continuation_4", "brackets", "indentation"]].mean(numeric_only=True)
    assert own["error"] + 3 * own["error_se"] < own["chance"]
