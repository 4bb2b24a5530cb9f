"""Questions from held-out text: the right answer is what the text says; guessing gains nothing."""

from collections import Counter

import pytest

from moelaws.corpus.prepare import prepare
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.sources import resolve
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.files.layout import TOKENIZER
from moelaws.spec.corpus import Corpus
from moelaws.tasks import held_out
from moelaws.tasks.held_out import FEWEST, ITEMS, PER_DOCUMENT, documents, held_out_items
from random_corpus import random_corpus
from repository import REPOSITORY

TASKS = [*(f"continuation_{n}" for n in held_out.LENGTHS), "brackets", "indentation"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A prepared corpus of this package's own sources, three tenths of which is held out."""
    root = tmp_path_factory.mktemp("tasks")
    sources = resolve("**/*.py", REPOSITORY / "src/moelaws")
    identity = Corpus(source=sources.identity(), vocab_size=512, validation=0.3)
    prepare(identity, sources, root / "corpus")
    return PreparedCorpus.open(root / "corpus")


@pytest.fixture(scope="module")
def items(corpus):
    return held_out_items(corpus)


def test_each_right_answer_is_what_the_text_says(corpus, items):
    texts = documents(corpus)
    for item in items:
        document, at = map(int, item.id.split("-"))
        assert item.document == str(document)
        text = texts[document]
        assert text[:at].endswith(item.context)
        assert text[at:].startswith(item.choices[item.answer]), item
        assert len(set(item.choices)) == len(item.choices)
        assert item.context == item.context.rstrip()  # harnesses move spaces to the choices
        assert len(item.context) >= held_out.CONTEXT // 2


def test_each_task_has_as_many_right_answers_of_each_kind(items):
    assert sorted({item.task for item in items}) == sorted(TASKS)
    for task in TASKS:
        answers = Counter(item.answer for item in items if item.task == task)
        n = sum(answers.values())
        assert FEWEST <= n <= ITEMS
        assert max(answers.values()) - min(answers.values()) <= 1, task


def test_no_document_asks_more_than_its_share(items):
    counts = Counter((i.task, i.document) for i in items)
    for (task, _), n in counts.items():
        assert n <= PER_DOCUMENT * (1 if task.startswith("continuation") else 3)


def test_other_continuations_come_from_other_documents(items):
    items = [i for i in items if i.task == "continuation_16"]
    homes = {}
    for item in items:
        homes.setdefault(item.choices[item.answer], set()).add(item.document)
    for item in items:
        others = {choice for i, choice in enumerate(item.choices) if i != item.answer}
        assert all(homes[choice] - {item.document} for choice in others)


def test_the_seed_chooses_the_questions(corpus, items):
    assert held_out_items(corpus) == items
    assert {i.id for i in held_out_items(corpus, seed=1)} != {i.id for i in items}


def test_prose_without_brackets_is_asked_for_continuations_alone(tmp_path):
    identity, folder = random_corpus(tmp_path)
    items = held_out_items(PreparedCorpus.open(folder))
    assert {item.group for item in items} == {"continuation"}
    assert identity.validation == 0.2


def test_the_tokens_of_a_context_are_the_same_whatever_follows(corpus, items):
    """Else harnesses that cut a text where its context ends give a choice too few tokens."""
    tokenizer = Tokenizer.load(corpus.folder / TOKENIZER)
    for item in items:
        before = tokenizer.encode(item.context)
        for choice in item.choices:
            assert tokenizer.encode(item.context + choice)[: len(before)] == before, item
