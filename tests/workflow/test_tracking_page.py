"""docs/tracking.md, done: each of its commands runs as it stands, over a finished sweep."""

import shutil

import pytest

from page_blocks import blocks, check_console
from repository import REPOSITORY


@pytest.mark.slow
def test_the_pages_commands_run(moved):
    runs = (summary.parent for summary in moved.summaries())
    for run, name in zip(runs, ("3fb1", "c02d"), strict=False):  # as the page calls two of them
        shutil.copytree(run, run.with_name(name))
    commands = blocks(REPOSITORY / "docs/tracking.md")
    assert len(commands) > 3
    for language, text in commands:
        assert language == "console"
        check_console(moved.root, text)
