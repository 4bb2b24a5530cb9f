"""``moelaws --help``: the commands by what one wants, each on a line of its own."""

import pytest
from click.testing import CliRunner

from moelaws.cli import OF_RULES, SECTIONS, cli


@pytest.fixture(scope="module")
def lines():
    return CliRunner().invoke(cli, ["--help"], terminal_width=80).output.splitlines()


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_has_a_line_for_each_of_its_commands(lines, title):
    first = lines.index(f"{title}:") + 1
    own = [line.split(maxsplit=1) for line in lines[first : first + len(SECTIONS[title])]]
    assert own == [[name, text] for name, text in SECTIONS[title].items()]


def test_no_command_stands_twice():
    names = [name for section in (*SECTIONS.values(), OF_RULES) for name in section]
    assert len(names) == len(set(names))
