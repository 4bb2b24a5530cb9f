"""YAML and JSON of users: what is read differently from YAML 1.1, and what is too much."""

import re
from pathlib import Path

import pytest
import yaml

from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.from_yaml import parse_yaml, read_yaml
from repository import REPOSITORY

# Ten times ten, nine times over.
BOMB = "a0: &a0 x\n" + "".join(
    f"a{i}: &a{i} [{', '.join(10 * [f'*a{i - 1}'])}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/**/*.yaml")), ids=lambda p: p.stem)
def test_the_shipped_files_are_read_as_any_reader_of_yaml_reads_them(path):
    assert read_yaml(path) == yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("[3, -3, 0, 1_000, 0x1F, 0b11]", [3, -3, 0, "1_000", 31, 3]),
        ("[0.5, .5, 1., -1.5e+3, 3e-3, 1e20]", [0.5, 0.5, 1.0, -1500.0, "3e-3", "1e20"]),
        ("[010, -007, 1:30:00, 1:30.5, 0o17]", ["010", "-007", "1:30:00", "1:30.5", "0o17"]),
        ("[on, off, yes, no, true]", [True, False, True, False, True]),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    ],
)
def test_plain_texts(text, data):
    assert parse_yaml(text, "a.yaml") == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested more than 100 levels deep"),
        ("- " * 100_000, "nested more than 100 levels deep"),
        (BOMB, "it has more than 100,000 values"),
        ("a: *a", "line 1, column 4: found undefined alias"),
        ("a: 2020-99-99", "month must be in 1..12"),
        ("9" * 5000, "integer string conversion: value has 5000 digits"),
        ("a: 1\na: 2", "line 2, column 1: key 'a' stands twice"),
        ("b: {a: 1, a: 2}", "line 1, column 11: key 'a' stands twice"),
        ("? [1]\n: 2", "line 1, column 3: found unhashable key"),
        ("a: !!python/object:os.system {}", "python/object:os.system'"),
        ("a: [1", "line 2, column 1: "),
        ("a: \x00", "unacceptable character"),
    ],
)
def test_yaml_that_is_refused(text, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        parse_yaml(text, "a.yaml")
    assert str(caught.value).startswith("a.yaml: this is not valid YAML: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "a": 2}', "key 'a' stands twice"),
        ("9" * 5000, "integer string conversion: value has 5000 digits"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": 1', "Expecting ',' delimiter: line 1"),
        (b"\xff", "byte 0 is not UTF-8"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        parse_json(text, "a.json")
    assert str(caught.value).startswith("a.json is not valid JSON: ")
    assert "sys." not in str(caught.value)


def test_json_may_begin_with_the_mark_of_an_editor():
    assert parse_json('{"a": 1}'.encode("utf-8-sig"), "a.json") == {"a": 1}


def test_every_file_of_a_user_goes_through_these_readers():
    """A loader of one's own would have none of these limits."""
    own = {"spec/from_json.py", "spec/from_yaml.py"}
    readers = r"\b(json\.loads?|json\.JSONDecoder|yaml\.\w*load\w*|model_validate_json)\("
    loaders = re.compile(readers)
    users = {
        str(path.relative_to(REPOSITORY / "src/moelaws"))
        for path in Path(REPOSITORY / "src").rglob("*.py")
        if loaders.search(path.read_text())
    }
    assert users == own
