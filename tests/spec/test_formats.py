"""YAML and JSON of users: what is read differently from YAML 1.1, and what is too much."""

import re
from pathlib import Path

import pytest
import yaml

from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json
from moelaws.spec.from_yaml import parse_yaml, read_yaml
from repository import REPOSITORY


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/**/*.yaml")), ids=lambda p: p.stem)
def test_the_shipped_files_are_read_as_any_reader_of_yaml_reads_them(path):
    assert read_yaml(path) == yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: =", {"a": "="}),
        ("1:30:00", "1:30:00"),  # YAML 1.1: 5400
        ("190:20:30.15", "190:20:30.15"),
        ("2020-99-99", "2020-99-99"),
        ("2020-01-01", "2020-01-01"),
        ("010", "010"),  # YAML 1.1: 8
        ("9" * 5000, "9" * 5000),
        ("[3, -3, 0, 1_000, 0x1F, 0b11]", [3, -3, 0, 1000, 31, 3]),
        ("[0.5, .5, 1., -1.5e+3, 3e-3, 1e20]", [0.5, 0.5, 1.0, -1500.0, "3e-3", "1e20"]),
        ("[on, off, yes, no, true]", [True, False, True, False, True]),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("[" * 100 + "]" * 100, parse_json("[" * 100 + "]" * 100, "")),
    ],
)
def test_plain_texts(text, data):
    assert parse_yaml(text, "a.yaml") == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "line 1: nested more than 100 levels deep"),
        ("{a: " * 100_000, "line 1: nested more than 100 levels deep"),
        ("- " * 100_000, "line 1: nested more than 100 levels deep"),
        ("\n".join(" " * n + "a:" for n in range(900)), "line 101: nested more than 100 levels"),
        (
            "a0: &a0 []\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 900)),
            "nested more than 100 levels deep",
        ),
        (
            "a0: &a0 [1]\n"
            + "\n".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)),
            "more than 1,000,000 values, aliases followed",
        ),
        ("a: &a [*a]", "line 1: *a names no &a before it"),
        ("a: 1\nb: !!timestamp 2020-99-99", "line 2: tag:yaml.org,2002:timestamp is a tag: write"),
        ("a: 1\na: 2", "line 2, column 1: key 'a' stands twice"),
        ("? [1]\n: 2", "line 1, column 3: found unhashable key"),
        ("!!set a: 2", "line 1: tag:yaml.org,2002:set is a tag: write the plain value instead"),
        (
            "a: !!python/object:os.system {}",
            "python/object:os.system is a tag: write",
        ),
        ("a: [1", "not valid YAML: line 2, column 1: "),
        ("a: \x00", "not valid YAML: unacceptable character"),
    ],
)
def test_yaml_that_is_refused(text, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        parse_yaml(text, "a.yaml")
    assert str(caught.value).startswith("a.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested more than 100 levels deep"),
        ("[" * 101 + "]" * 101, "nested more than 100 levels deep"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested more than 100 levels deep"),
        ("9" * 5000, "a.json: a whole number in it has thousands of digits"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": 1', "is not valid JSON: Expecting ',' delimiter: line 1"),
        (b"\xff", "is not valid JSON: byte 0 is not UTF-8"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        parse_json(text, "a.json")
    assert str(caught.value).startswith("a.json")
    assert "sys." not in str(caught.value)


def test_json_may_begin_with_the_mark_of_an_editor():
    assert parse_json('{"a": 1}'.encode("utf-8-sig"), "a.json") == {"a": 1}


def test_every_file_of_a_user_goes_through_these_readers():
    """A loader of one's own would have none of these limits."""
    own = {"spec/from_json.py", "spec/from_yaml.py"}
    own |= {"launcher/server.py"}  # what a command writes to it
    readers = r"\b(json\.loads?|json\.JSONDecoder|yaml\.\w*load\w*|model_validate_json)\("
    loaders = re.compile(readers)
    users = {
        str(path.relative_to(REPOSITORY / "src/moelaws"))
        for path in Path(REPOSITORY / "src").rglob("*.py")
        if loaders.search(path.read_text())
    }
    assert users == own
