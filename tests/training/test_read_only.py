"""A finished run in a tree that the user may read and not write, such as a colleague's."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import call
from moelaws.spec.errors import UserError

NOBODY = 65534


@pytest.fixture
def tree():
    """A folder that other users can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


@contextmanager
def read_only(tree):
    """Takes the permission to write in ``tree``; root has it always, so it becomes nobody."""
    paths, user = [tree, *tree.rglob("*")], os.geteuid()
    for path in paths:
        path.chmod(0o555)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        if user == 0:
            os.seteuid(user)
        for path in paths:
            path.chmod(0o755)


@pytest.mark.parametrize("words", [[], ["--keep-weights"]])
def test_its_summary_is_returned(configure, train, tree, words):
    config = configure(steps=2)
    summary = train(config, out=tree / "one", keep_weights=bool(words))
    (tree / "config.json").write_text(config.canonical_json())
    words = ["train", tree / "config.json", "--out", tree / "one", "--json", *words]
    # Once as the owner: the command's modules may lie where nobody can read.
    assert call(*words).exit_code == 0
    with read_only(tree):
        done = call(*words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == summary.model_dump(mode="json")
    assert done.stderr == ""


def test_what_is_left_to_do_is_refused(configure, train, tree):
    config = configure(steps=2)
    train(config, out=tree / "one")
    with read_only(tree):
        for folder in ("one", "two"):
            with pytest.raises(UserError, match=f"{folder}.*: cannot be written: Permission"):
                train(config, out=tree / folder, keep_weights=True)
