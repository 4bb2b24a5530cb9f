"""docs/coverage.md names each figure and table of the papers; the image is of files that exist."""

import re

import pytest

from moelaws.spec.project import load_study, study_names
from repository import REPOSITORY

ROW = re.compile(
    r"^\| *(?P<id>[A-Za-z]\w*) *\|(?P<shows>[^|]+)\|(?P<where>[^|]*)\|(?P<note>[^|]*)\|$"
)
# What each paper numbers, from their texts: figures with their panels, and tables.
PRINTED = {
    "allocation": "F1 F2a F2b F2c F3a F3b F4 F5a F5b F6 T1 T2 T3",
    "leverage": "F1a F1b F2a F2b F3a F3b F3c F4a F4b F4c F5 F6a F6b F7 F8 F9 F10a F10b F11a F11b "
    "F12a F12b F13a F13b F14a F14b F14c F14d F15 F16 F17 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 "
    "T12 T13 T14 T15 T16 T17",
    "sparsity": "F1a F1b F2a F2b F2c F3a F3b F3c F4 F5 F6a F6b F7 F8 F9 F10 F11 F12 F13a F13b F14 "
    "F15 T1 T2 T3",
    "generalization": "F1 F2 F3 F4 F5 F6a F6b F7a F7b T1 T2 T3 T4 T5",
    "sectional": "F1 F2 F3 F4 F5 F6",
}


def rows() -> dict[str, list[dict[str, str]]]:
    """The rows of the table under each heading."""
    tables: dict[str, list[dict[str, str]]] = {}
    for section in (REPOSITORY / "docs/coverage.md").read_text().split("\n## ")[1:]:
        matches = [match for line in section.splitlines() if (match := ROW.match(line))]
        cells = [{k: v.strip() for k, v in match.groupdict().items()} for match in matches]
        tables[section.split()[0]] = cells
    return tables


def places(row: dict[str, str]) -> set[str]:
    """The entries, as STUDY:NAME, that make a figure or table."""
    return set(re.findall(r"`([^`]+)`", row["where"]))


ENTRIES = {
    f"{study}:{entry.name}"
    for study in study_names(REPOSITORY)
    for entry in load_study(study, REPOSITORY).pictures
}


@pytest.mark.parametrize("paper", PRINTED)
def test_nothing_that_a_paper_numbers_is_passed_over(paper):
    named = [row["id"] for row in rows()[paper]]
    assert len(named) == len(set(named))
    assert set(PRINTED[paper].split()) <= set(named)


def test_each_row_is_made_by_a_study_or_says_why_not():
    for paper, table in rows().items():
        for row in table:
            assert places(row) <= ENTRIES, (paper, row)
            assert places(row) or len(row["note"]) > 15, (paper, row)


def test_no_picture_of_a_study_lacks_a_row():
    named = {place for table in rows().values() for row in table for place in places(row)}
    assert named >= ENTRIES


def test_the_image_is_made_of_files_that_exist_and_of_the_tested_lock():
    text = re.sub(r"^#.*\n", "", (REPOSITORY / "Dockerfile").read_text(), flags=re.M)
    steps = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line]
    assert steps[0][0] == "FROM"
    for words in (rest.split() for name, rest in steps if name == "COPY"):
        for source in words[:-1]:
            assert (REPOSITORY / source).exists(), source
    assert any("-r envs/cpu.lock" in rest for name, rest in steps if name == "RUN")
    (python,) = re.findall(r"^python:(3\.\d+)-slim$", steps[0][1])
    assert python in (REPOSITORY / "envs/cpu.lock").read_text()  # one that the lock knows
