"""What pydantic refuses is told in a user's words: the key as written, its value, what is right."""

import copy
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_yaml import read_yaml
from moelaws.spec.hyperparameters import Pinned
from moelaws.spec.project import Project
from moelaws.spec.study import Study
from nested import changed
from repository import REPOSITORY

PROJECT = read_yaml(REPOSITORY / "config/config.yaml")
STUDY = read_yaml(REPOSITORY / "config/studies/sparsity.yaml")
PINNED = read_yaml(REPOSITORY / "config/hyperparameters/demo.yaml")
SWEEP = "grids.demo.sweeps.0"
SETTINGS = "grids.demo.settings"
# Names of members of unions and of models, and sentences of pydantic's own.
RIDDLES = re.compile(
    r"Input should|Extra inputs|Field required|pydantic|validator|literal\[|tuple\[|function-"
    r"|\bstr\b|\bbool\b|\bint\b|\bfloat\b|\bdict\b|NoneType|None|Settings|PowerOf|Dataset\b|Count|\[key\]"
)


def without_values(text):
    return re.sub(r"is [\[{].*?; it must|'[^']*'", "", text)


def refusal(schema, data):
    with pytest.raises(UserError) as caught:
        parse(schema, data, "a.yaml")
    assert not RIDDLES.search(without_values(str(caught.value)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{SWEEP}.axes.S", None, "grids.demo.sweeps #1.axes.S is empty (null); it must be true"),
        # A key that is also the name of a union's member
        (f"{SWEEP}.axes.S", {"bool": 1}, "axes.S is {'bool': 1}; it must be true or false, a"),
        (f"{SWEEP}.axes.d_modell", 8, "no setting 'd_modell'; did you mean d_model? There are: C,"),
        (f"{SETTINGS}.seed", "1:30:00", "settings.seed is '1:30:00'; it must be a number"),
        pytest.param(f"{SETTINGS}.lr", 1 << 99_999, "lr is a value too long to show", id="huge"),
        (f"{SETTINGS}.n_layers", "1e12", "n_layers is '1e12'; it must be at most 1,000,000"),
        ("grids.demo.derive.batch", {"rule": "chozen"}, "chosen; did you mean chosen?"),
        ("grids.demoo", {}, "grids.demoo: the key 'demoo' must be demo, workstation, gpu,"),
        (
            f"{SWEEP}.axes",
            {"d_model": list(range(1, 1001)), "lr": list(range(1, 1001))},
            "grids.demo.sweeps #1: a sweep of 1,000,000 points; it may have at most 100,000",
        ),
        ("fits.0.name", False, "fits #1.name is false; it must be a text (YAML reads yes, no, "),
        ("figures.0.with", {"1x": 2}, "figures.F1a.with.1x: the key '1x' must be a name of "),
    ],
)
def test_mistakes_of_a_study(path, value, message):
    line = refusal(Study, changed(STUDY, path, value))
    assert message in line
    assert line.startswith("a.yaml: ")
    assert "\n" not in line or path == "grids.demoo" or "rule" in str(value)


def paths(data, before=()):
    """The path of every key and entry in nested data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    for step, value in inner:
        yield (*before, step)
        if isinstance(value, dict | list):
            yield from paths(value, (*before, step))


ODD = [
    *(None, True, -1, 0, 1.5, 1e300, 10**400, float("nan"), "", "x", "1:30", "é", "[key]"),
    *([], [None], {}, {"x": 1}, {"x": None}, [[]], [{"name": 5}]),
]
SCHEMAS = {"project": (Project, PROJECT), "study": (Study, STUDY), "pinned": (Pinned, PINNED)}


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_stands_anywhere_is_taken_or_refused_in_plain_words(data):
    schema, whole = SCHEMAS[data.draw(st.sampled_from(sorted(SCHEMAS)))]
    path = data.draw(st.sampled_from([p for p in paths(whole) if "with" not in p]))
    whole = copy.deepcopy(whole)
    target = whole
    for step in path[:-1]:
        target = target[step]
    if data.draw(st.booleans()) and isinstance(target, dict):
        target[f"{path[-1]}x"] = target.pop(path[-1])
    else:
        target[path[-1]] = data.draw(st.sampled_from(ODD))
    told = ""
    try:
        parse(schema, whole, "a.yaml")
    except UserError as error:
        told = without_values(str(error))
    assert not RIDDLES.search(told)


def test_dozens_of_mistakes_are_told_in_a_few_lines():
    with pytest.raises(UserError) as error:
        parse(Project, {"gpus": [-1] * 30}, "config.yaml")
    lines = str(error.value).splitlines()
    assert len(lines) == 7
    assert lines[-1] == "config.yaml: and 24 more like these"
