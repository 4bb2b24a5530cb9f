"""What the pages in docs/ say, done: their code blocks run in a copy of the repository.

A `python` or `yaml` block whose first line is `# PATH` is that file; `# PATH, under KEY:` goes into
the file behind the line `KEY:`. Another `python` block is a program. In a `console` block the lines
with `$` are commands and the others must be in their output, in that order, with `...` for
anything. A comment `not run: why` before a block leaves it out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from moelaws import laws
from moelaws.cli import COMMANDS
from moelaws.records.layout import Results
from moelaws.spec.hyperparameters import read_pinned
from moelaws.tables.schema import COLUMNS
from moelaws.training import weights
from repository import REPOSITORY, copy_repository

PAGES = sorted(REPOSITORY.glob("docs/*.md"))
CONCEPTS = REPOSITORY / "docs/concepts.md"
BLOCK = re.compile(r"^(<!-- not run: \w[^\n]*-->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
PLACE = re.compile(r"# ([\w./-]+/[\w./-]+)(?:, under (\w+):)?\n")


@dataclass(frozen=True)
class Copy:
    """A copy of the repository in which a page's blocks are run."""

    root: Path

    def write(self, path: str, key: str | None, text: str) -> None:
        file = self.root / path
        if key is None:
            assert not file.exists(), f"{path} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        else:
            before, found, after = file.read_text().partition(f"\n{key}:\n")
            assert found, f"{path} has no line {key}:"
            file.write_text(before + found + text + after)

    def run(self, command: list[str]) -> str:
        tools = Path(sys.executable).parent
        done = subprocess.run(
            command,
            cwd=self.root,
            env=os.environ
            | {
                "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(self.root / "src"),
                "OMP_NUM_THREADS": "1",
                "MOELAWS_DEVICE": "cpu",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *expected = part.rstrip().splitlines()
            output = self.run(["bash", "-c", command])
            lines = iter(output.splitlines())
            for line in expected:
                if line == "...":
                    continue
                pattern = pattern_of(line)
                assert any(pattern.fullmatch(got) for got in lines), f"{command}: {line}\n{output}"


def pattern_of(line: str) -> re.Pattern[str]:
    """A line as shown, however it is spaced, with `...` for anything."""
    words = [re.escape(word).replace(re.escape("..."), ".*") for word in line.split()]
    return re.compile(r"\s*" + r"\s+".join(words) + r"\s*")


@pytest.fixture
def copy(tmp_path):
    copy_repository(tmp_path)
    return Copy(tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "concepts.md",
        "corpora.md",
        "training.md",
        "adding-a-law.md",
        "laws.md",
        pytest.param("fitting.md", marks=pytest.mark.slow),
        pytest.param("planning.md", marks=pytest.mark.slow),
        pytest.param("power-analysis.md", marks=pytest.mark.slow),
        pytest.param("adding-a-study.md", marks=pytest.mark.slow),
    ],
)
def test_a_pages_blocks_run(copy, page):
    done = 0
    for skip, language, text in BLOCK.findall((REPOSITORY / "docs" / page).read_text()):
        if skip or language not in ("python", "yaml", "console"):
            continue
        place = PLACE.match(text)
        if place:
            copy.write(place[1], place[2], text[place.end() :])
        elif language == "console":
            copy.console(text)
        else:
            assert language == "python", f"a block without its file: {text}"
            copy.run([sys.executable, "-c", text])
        done += 1
    assert done


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page):
    assert set(re.findall(r"(?:`|\$ )moelaws (\w+)", page.read_text())) <= set(COMMANDS)


def test_every_command_is_at_a_glance():
    assert set(re.findall(r"^\| `moelaws (\w+)", CONCEPTS.read_text(), re.M)) >= set(COMMANDS)


def test_every_law_is_on_its_page():
    page = (REPOSITORY / "docs/laws.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.M)
    assert {name for row in rows for name in re.findall(r"`([\w.]+)`", row)} == set(laws.ids())


def test_the_layout_is_that_of_results():
    text, r = CONCEPTS.read_text(), Results()
    for path in (
        r.corpus("<corpus_id>") / "meta.json",
        r.summary("<run_id>"),
        r.checkpoint("<run_id>"),
        r.weights("<run_id>") / weights.FILE,
        r.table("<tier>", "<study>"),
        r.fit("<tier>", "<study>", "<fit>"),
        r.derived("<tier>", "<study>", "<name>"),
        r.figure("<tier>", "<study>", "<figure>"),
        r.tier("<tier>", simulated=True),
        r.tier("<tier>") / "report.html",
    ):
        assert f"`{path.relative_to(r.root)}" in text


def test_the_columns_are_the_tables():
    section = CONCEPTS.read_text().partition("## The table's columns")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (`.*?) \|", section, re.M)
    named = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    assert {"N_total", "C", "L"} < named <= {column.name for column in COLUMNS}


def test_the_demos_learning_rates_are_those_pinned():
    page = " ".join((REPOSITORY / "docs/demo.md").read_text().split())
    pinned = read_pinned("demo", REPOSITORY)
    assert pinned is not None
    assert f"lr = {pinned.lr.coefficient:.3g} C^{pinned.lr.exponent:.3f}" in page
    assert f"batches of {pinned.batch_tokens.at(1e11):.0f} tokens" in page
