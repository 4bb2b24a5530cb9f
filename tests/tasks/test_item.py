"""Task files: what is written is read back, and a mistake is told with its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.spec.errors import UserError
from moelaws.tasks.item import Item, read_items, write_items

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@st.composite
def items(draw):
    choices = draw(st.lists(texts, min_size=1, max_size=5))
    context = draw(texts | st.just(""))
    if draw(st.booleans()):
        context = tuple(draw(texts) for _ in choices)
    answer = draw(st.integers(0, len(choices) - 1))
    return {"context": context, "choices": tuple(choices), "answer": answer, "group": draw(texts)}


@given(st.lists(items(), min_size=1, max_size=5))
def test_a_task_file_holds_its_items_whatever_their_texts(tmp_path_factory, data):
    made = [Item(task="t", id=str(i), **item) for i, item in enumerate(data)]
    path = tmp_path_factory.mktemp("tasks") / "t.jsonl"
    write_items(path, made)
    assert read_items(path) == made


def test_a_line_of_another_program_is_read_with_its_line_separators_inside(tmp_path):
    path = tmp_path / "t.jsonl"
    line = {"task": "t", "id": "1", "context": "a\u2028b", "choices": [" c", " d"]}
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n\n", encoding="utf-8")
    (item,) = read_items(path)
    assert item.context == "a\u2028b"
    assert item.answer == 0


GOOD = '{"task": "t", "id": "1", "context": "a", "choices": [" b", " c"]}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "\n" + GOOD, "line 2: the task t has an item '1' already"),
        ("{", "line 1 is not valid JSON"),
        ("[]", "line 1"),
        (GOOD.replace('"id"', '"idd"'), "unknown key idd"),
        (GOOD.replace("]", '], "answer": 2'), "answer is 2; the 2 choices count from 0"),
        (GOOD.replace('"a"', '["a"]'), "1 contexts; it must be one, or one for each choice"),
        (GOOD.replace('" c"', '""'), "a choice is empty"),
        (GOOD.replace('"t"', '"a task"'), "task"),
        ("\n", "has no items"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path, text, message):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_items(path)
    assert str(path) in str(error.value)
    assert message in str(error.value)
