"""Scores: what the model's own probabilities say, however the questions are batched."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from moelaws.corpus.tokenizer import Tokenizer
from moelaws.files.layout import TOKENIZER
from moelaws.model.transformer import Transformer
from moelaws.probing.bench import Answer, score, task_score
from moelaws.spec.errors import UserError
from moelaws.spec.model import Model
from moelaws.tasks.item import Item
from random_corpus import VOCABULARY, random_corpus

CONTEXT = 24


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    _, folder = random_corpus(tmp_path_factory.mktemp("scores"))
    return Tokenizer.load(folder / TOKENIZER)


@pytest.fixture(scope="module")
def model():
    """An untrained mixture whose experts and logits differ much from token to token."""
    ffn = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}
    about = Model(
        n_layers=2, d_model=16, n_heads=2, n_kv=1, context=CONTEXT, vocab_size=VOCABULARY,
        ffn=ffn, init_std=0.5,
    )  # fmt: skip
    return Transformer(about, seed=3).eval()


def log_probability(model, tokenizer, context, choice):
    """Nats of a choice after its context and whether it is the greedy one, a token at a time."""
    bare = context.rstrip()
    tokens = tokenizer.encode(context + choice)
    n = max(1, len(tokens) - len(tokenizer.encode(bare)))
    if n == len(tokens):
        tokens = [tokenizer.end_of_document, *tokens]
    nats, greedy = 0.0, True
    for place in range(len(tokens) - n, len(tokens)):
        window = tokens[max(0, len(tokens) - CONTEXT - 1) : place]
        with torch.no_grad():
            logits, _ = model(torch.tensor([window]))
        nats += float(torch.log_softmax(logits[-1].double(), -1)[tokens[place]])
        greedy &= int(logits[-1].argmax()) == tokens[place]
    return Answer(nats, greedy)


words = st.text("abcdefghij ", min_size=1, max_size=12).filter(lambda text: text.strip())
questions = st.builds(
    lambda context, choices, answer: Item(
        task="t", id="0", context=context, choices=choices, answer=answer % len(choices)
    ),
    st.text("abcdefghij \n", max_size=60),
    st.lists(words, min_size=1, max_size=4),
    st.integers(0, 3),
)


@settings(max_examples=25)
@given(st.lists(questions, min_size=1, max_size=4))
def test_each_choice_is_as_likely_as_its_tokens_one_by_one(model, tokenizer, items):
    items = [item.model_copy(update={"id": str(i)}) for i, item in enumerate(items)]
    (scored,) = score(model, tokenizer, items, CONTEXT)
    answers = [
        [log_probability(model, tokenizer, item.context, choice) for choice in item.choices]
        for item in items
    ]
    alone = task_score(items, answers)
    assert scored["bits_per_byte"] == pytest.approx(alone["bits_per_byte"], rel=1e-4)
    assert scored["accuracy"] == alone["accuracy"]
    assert scored["accuracy_per_byte"] == alone["accuracy_per_byte"]


def test_contexts_of_each_choice_are_read(model, tokenizer):
    contexts, choice = ("abc", "defg hij"), " ab"
    item = Item(task="t", id="0", context=contexts, choices=(choice, choice), answer=1)
    (scored,) = score(model, tokenizer, [item], CONTEXT)
    nats = [log_probability(model, tokenizer, context, choice).nats for context in contexts]
    assert scored["bits_per_byte"] == pytest.approx(-nats[1] / math.log(2) / 3, rel=1e-4)
    assert scored["accuracy"] == (nats[1] > nats[0])


def test_a_task_to_produce_counts_greedy_answers_and_has_no_chance():
    items = [Item(task="t", id=str(i), context="a", choices=("bc",)) for i in range(4)]
    scored = task_score(items, [[Answer(-2 * math.log(2), greedy)] for greedy in (1, 0, 0, 1)])
    assert (scored["accuracy"], scored["chance"]) == (0.5, 0)
    assert scored["bits_per_byte"] == 1.0


def test_errors_of_independent_items_are_the_textbook_ones_and_count_documents_else():
    said = [[Answer(-1, False), Answer(-2, False)]] * 9
    items = [
        Item(task="t", id=str(i), context="a", choices=("b", "c"), answer=int(i % 3 == 0))
        for i in range(9)
    ]
    alone = task_score(items, said)
    right = np.array([item.answer == 0 for item in items])
    assert alone["accuracy"] == right.mean()
    assert alone["accuracy_se"] == pytest.approx(right.std(ddof=1) / 3)
    assert alone["chance"] == 0.5
    thrice = [i.model_copy(update={"document": str(int(i.id) % 3)}) for i in items]
    clustered = task_score(thrice, said)
    assert clustered["documents"] == 3
    # Each of the three documents is all right or all wrong.
    assert clustered["accuracy_se"] > alone["accuracy_se"]


def test_a_longer_choice_wins_by_bytes_that_loses_in_all():
    item = Item(task="t", id="0", context="a", choices=("b", "cccc"), answer=1)
    scored = task_score([item], [[Answer(-1, False), Answer(-2, False)]])
    assert (scored["accuracy"], scored["accuracy_per_byte"]) == (0, 1)


def test_a_task_with_a_choice_longer_than_the_models_context_is_left_out(model, tokenizer):
    long = Item(task="long", id="7", context="a", choices=("abcdefghij" * 30, "b"))
    short = Item(task="short", id="7", context="a", choices=("c", "b"))
    assert [s["task"] for s in score(model, tokenizer, [long, short], CONTEXT)] == ["short"]
    with pytest.raises(UserError, match=r"more than the model's context of 24, in each task"):
        score(model, tokenizer, [long], CONTEXT)
