"""Every call of Snakemake that README and the pages in docs/ print works as it is printed.

What tests/docs/test_docs.py and CI do not run plans its jobs here, in a dry run.
"""

import re
import shlex
import subprocess
import sys

import pytest
from snakemake.cli import parse_args

from moelaws.spec.project import study_names
from page_blocks import BLOCK
from repository import REPOSITORY, copy_repository

PAGES = [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/**/*.md"))]
IN_SENTENCES = {"gpus.md", "cluster.md"}  # whose sentences also say what to call
# What a dry run needs that the repository has not, by a word of the call.
EXEMPT = {
    "studies=settle.yaml": "the command before it writes this study, and the text is the reader's",
    "results/demo/fits/sparsity/tokens.json": "the page adds this fit; its own dry run is run",
    "studies=public": "the commands before it fetch the runs",
}


def calls_in(text):
    """What follows `docker run`, `srun`, `module load` and the like is a call as well."""
    return {call.strip() for call in re.findall(r"(?<![\w.])snakemake -[^\n`#]*", text)}


def not_run(page):
    """What no other test and no line of CI runs: blocks that say so, and some pages' sentences."""
    text = page.read_text()
    blocks = [match[0] for match in BLOCK.finditer(text) if (match[1] or "")[5:].startswith("not")]
    return "".join(blocks) + BLOCK.sub("", text) * (page.name in IN_SENTENCES)


PRINTED = sorted(set().union(*(calls_in(page.read_text()) for page in PAGES)))
# Neither -n nor --cores changes which jobs a dry run plans. Of calls that differ in the study or
# the tier alone one is enough.
PLANNED = list(
    {
        tuple(
            word for word in shlex.split(call) if not re.match("--config|studies=|tier=", word)
        ): call
        for call in sorted(
            re.sub(r" (-n|--cores \w+)\b", "", call)
            for call in set().union(*(calls_in(not_run(page)) for page in PAGES))
            if not EXEMPT.keys() & {*shlex.split(call)}
        )
    }.values()
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    copy_repository(root)
    return root


def test_the_pages_print_calls():
    assert len(PRINTED) >= 35
    assert len(PLANNED) >= 12
    named = {name for call in PRINTED for name in re.findall(r"studies=(\w+)(?![\w/])", call)}
    assert named <= {*study_names(REPOSITORY), "all", "settle"}
    words = {word for call in PRINTED for word in shlex.split(call)}
    assert EXEMPT.keys() <= words, "an exemption of a call that no page prints any more"


@pytest.mark.parametrize("call", PRINTED)
def test_snakemake_takes_the_words_of_a_call(call):
    _, *words = shlex.split(call)
    _, read = parse_args(words)
    assert read.cores or read.dryrun or read.unlock or read.profile, "it needs --cores"


@pytest.mark.slow
@pytest.mark.parametrize("call", PLANNED)
def test_a_printed_call_plans_its_jobs(root, call):
    _, *words = shlex.split(call)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", *words],
        cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    if "--unlock" not in words:
        jobs = r"^(train|prepare_corpus|draw|simulate) +\d"
        assert re.search(jobs, done.stdout, re.M), done.stdout
