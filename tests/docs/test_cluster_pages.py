"""Every call of Snakemake on the pages of GPUs and clusters plans its jobs as it is printed."""

import re
import shlex
import subprocess
import sys

import pytest

from repository import REPOSITORY, copy_repository

pytestmark = pytest.mark.slow

PAGES = ("gpus.md", "cluster.md")
CALLS = sorted(
    {
        call
        for page in PAGES
        for call in re.findall(
            r"(?:^\$ |^\$ python \S+ --install |`)(snakemake --[^\n`]*)",
            (REPOSITORY / "docs" / page).read_text(),
            re.M,
        )
    }
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    copy_repository(root)
    return root


def test_both_pages_print_calls():
    assert len(CALLS) >= 8
    assert sum("device=cuda" in call for call in CALLS) >= 3
    assert sum("--profile slurm" in call for call in CALLS) >= 4


@pytest.mark.parametrize("call", CALLS)
def test_a_printed_call_plans_its_jobs(root, call):
    _, *words = shlex.split(call)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", *words],
        cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    if "--unlock" not in words:
        assert re.search(r"^(train|prepare_corpus) +\d", done.stdout, re.M), done.stdout
