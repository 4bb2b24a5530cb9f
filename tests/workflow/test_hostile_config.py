"""Whatever stands anywhere in the configuration is taken, or refused as a user's mistake."""

import copy
import shutil
from contextlib import suppress

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws.spec.errors import UserError
from moelaws.spec.from_yaml import read_yaml
from moelaws.workflow.jobs import Jobs
from repository import REPOSITORY

STUDY, CONFIG = "config/studies/sparsity.yaml", "config/config.yaml"
TEXT = ("hello world, this is text. " * 40 + "\n\n") * 20_000
ODD = [
    *(None, True, -1, 0, 1.5, 1e300, 10**400, float("nan"), float("inf"), "", "x", "1:30", "010"),
    *("\x00", "{a}", "*", "C > 1", [], [None], {}, {"x": 1}, [[]], [1e300], [{"name": 5}]),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(REPOSITORY / "config", root / "config")
    (root / "text.txt").write_text(TEXT)
    config = {**read_yaml(root / CONFIG), "corpus": "text.txt"}
    (root / CONFIG).write_text(yaml.safe_dump(config))
    return root


def load(root):
    with suppress(UserError):
        Jobs.load({}, root).too_much()


def paths(data, before=()):
    """The path of every key and entry, of the grids only the demo's."""
    for step, value in data.items() if isinstance(data, dict) else enumerate(data):
        if before != ("grids",) or step == "demo":
            yield (*before, step)
            if isinstance(value, dict | list):
                yield from paths(value, (*before, step))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_values(data, root):
    file = root / data.draw(st.sampled_from([STUDY, STUDY, STUDY, CONFIG]))
    whole = read_yaml(file)
    changed = copy.deepcopy(whole)
    *outer, last = data.draw(st.sampled_from(list(paths(whole))))
    target = changed
    for step in outer:
        target = target[step]
    target[last] = data.draw(st.sampled_from(ODD))
    text = file.read_text()
    file.write_text(yaml.safe_dump(changed, sort_keys=False, allow_unicode=True))
    try:
        load(root)
    finally:
        file.write_text(text)


MARKS = [
    *(b":", b"- ", b"[", b"}", b"'", b"\n", b"  ", b"\t", b"&a ", b"*a", b"<<: ", b"? ", b"| "),
    *(b"!!int ", b"!!set ", b"!!binary ", b"%", b"\xff", b"\x00", b"---\n", b"0x", b"1:2"),
]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(place=st.floats(0, 1), cut=st.integers(0, 200), mark=st.sampled_from(MARKS))
def test_texts(place, cut, mark, root):
    file = root / STUDY
    text = file.read_bytes()
    at = int(place * len(text))
    file.write_bytes(text[:at] + mark + text[at + cut :])
    try:
        load(root)
    finally:
        file.write_bytes(text)
