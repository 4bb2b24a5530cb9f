"""Tasks from a corpus' own held-out documents, so that any run can be asked without a download.

- ``continuation_16`` and ``continuation_64``: which of four texts of so many characters comes next?
  The other three continue other documents.
- ``brackets``: which bracket closes here? Equally often each of those that the text has.
- ``indentation``: is the next line of code indented less, equally or more? Equally often each.

A question is asked where a line ends or a bracket closes, and its context is what comes before. The
same documents and seed give the same items under every version of NumPy and Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from moelaws.corpus.shards import TOKENIZER, PreparedCorpus
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.spec.errors import UserError
from moelaws.tasks.item import Item

CONTEXT = 160  # characters before a question, at the most
LENGTHS = (4, 16, 64)  # characters of a continuation
ITEMS = 180  # of a task
FEWEST = 60  # of a task that is worth asking: its accuracy is known to some 0.06
PER_DOCUMENT = 8  # items of a task, at the most
DOCUMENTS = 2000  # that are read, at the most: they are in a random order
LONGEST = 1 << 16  # characters of each that are read
CLOSING = ")]}"
STEP = 4  # spaces of an indentation


class Place(NamedTuple):
    """Where a question can be asked: ``text[:at]`` is before it. ``kind`` is what is balanced."""

    document: int
    at: int
    kind: int


def held_out_items(corpus: PreparedCorpus, seed: int = 0) -> list[Item]:
    """Returns the items of all tasks that the held-out documents of ``corpus`` have enough for.

    Raises:
        UserError: where they have enough for none.
    """
    texts = documents(corpus)
    items = [
        *(item for length in LENGTHS for item in continuations(texts, length, seed)),
        *closings(texts, seed),
        *indentations(texts, seed),
    ]
    if not items:
        raise UserError(
            f"{corpus.folder}: its {len(texts)} held-out documents give fewer than {FEWEST} "
            "questions of each kind; add text, or raise the share that is held out (validation)"
        )
    return items


def documents(corpus: PreparedCorpus) -> list[str]:
    """Returns the texts of the held-out documents, or of the first ``DOCUMENTS`` of them."""
    tokenizer = Tokenizer.load(corpus.folder / TOKENIZER)
    starts = corpus.validation_starts[: DOCUMENTS + 1].tolist()
    # No token is longer than a document: so many tokens have at least so many characters.
    texts = (corpus.validation[a : min(b - 1, a + LONGEST)] for a, b in pairwise(starts))
    return [tokenizer.decode(tokens.tolist())[:LONGEST] for tokens in texts]


def continuations(texts: Sequence[str], length: int, seed: int) -> list[Item]:
    """Returns items with four continuations of ``length`` characters, one of them the true one."""

    def places(text: str) -> Iterator[tuple[int, int]]:
        for at in range(CONTEXT // 2, len(text) - length):
            if text[at - 1].isalnum() and not text[at].isalnum() and text[at] != "_":
                yield at, 0

    chosen = _chosen(texts, places, seed + length)
    following = [texts[place.document][place.at : place.at + length] for place in chosen]
    items = []
    for i, place in enumerate(chosen):
        others: list[str] = []
        for j in (*range(i + 1, len(chosen)), *range(i)):
            new = following[j] not in (following[i], *others)
            if new and chosen[j].document != place.document and len(others) < 3:
                others.append(following[j])
        if len(others) == 3:
            answer = i % 4
            choices = (*others[:answer], following[i], *others[answer:])
            items.append(_item(f"continuation_{length}", texts, place, choices, answer))
    return items if len(items) >= FEWEST else []


def closings(texts: Sequence[str], seed: int) -> list[Item]:
    """Returns items with the closing brackets that the texts have, equally many of each."""

    def places(text: str) -> Iterator[tuple[int, int]]:
        for at, character in enumerate(text):
            if character in CLOSING and at >= CONTEXT // 2 and not text[at - 1].isspace():
                yield at, CLOSING.index(character)

    chosen = _chosen(texts, places, seed)
    kinds = sorted({place.kind for place in chosen})
    if len(kinds) < 2:
        return []
    choices = tuple(CLOSING[kind] for kind in kinds)
    return [_item("brackets", texts, p, choices, kinds.index(p.kind)) for p in chosen]


def indentations(texts: Sequence[str], seed: int) -> list[Item]:
    """Returns items whose next line is indented by one step less, equally, or by one step more.

    Each choice is that indentation and the first word of the true line.
    """

    def places(text: str) -> Iterator[tuple[int, int]]:
        for at in _line_ends(text):
            here = _indentation(text[text.rfind("\n", 0, at) + 1 : at])
            line = text[at + 1 : text.find("\n", at + 1)]
            change = _indentation(line) - here
            if here >= STEP and line.strip() and change in (-STEP, 0, STEP):
                yield at, change // STEP + 1

    items = []
    for place in _chosen(texts, places, seed):
        text = texts[place.document]
        end = text.find("\n", place.at + 1)
        line = text[place.at + 1 : end]
        less = _indentation(line) - place.kind * STEP
        word = line.split(maxsplit=1)[0]
        choices = tuple("\n" + " " * (less + step * STEP) + word for step in range(3))
        items.append(_item("indentation", texts, place, choices, place.kind))
    return items


def _line_ends(text: str) -> Iterator[int]:
    """Yields where a line that is not blank ends, with a context of some length before it."""
    at = text.find("\n", CONTEXT // 2)
    while at >= 0:
        if not text[at - 1].isspace():  # harnesses move a context's last spaces to the choices
            yield at
        at = text.find("\n", at + 1)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _chosen(
    texts: Sequence[str], places: Callable[[str], Iterator[tuple[int, int]]], seed: int
) -> list[Place]:
    """Draws places, equally many of each kind and few in one document; none where few are there."""
    every = [Place(d, at, kind) for d, text in enumerate(texts) for at, kind in places(text)]
    # Raw bits are the same under every version of NumPy; see corpus.batches.
    bits = np.random.Philox(key=[seed, 0]).random_raw(len(every))
    by_kind: dict[int, list[Place]] = {}
    in_document: dict[tuple[int, int], int] = {}
    for i in np.argsort(np.asarray(bits), kind="stable"):
        place = every[i]
        key = (place.document, place.kind)
        if in_document.setdefault(key, 0) < PER_DOCUMENT:
            in_document[key] += 1
            by_kind.setdefault(place.kind, []).append(place)
    by_kind = {k: p for k, p in by_kind.items() if len(p) * len(by_kind) >= FEWEST}
    if not by_kind:
        return []
    each = min(ITEMS // len(by_kind), *map(len, by_kind.values()))
    # By turns, so that any first part of the items is balanced too.
    turns = zip(*(by_kind[kind][:each] for kind in sorted(by_kind)), strict=True)
    return [place for turn in turns for place in turn]


def _item(
    task: str, texts: Sequence[str], place: Place, choices: tuple[str, ...], answer: int
) -> Item:
    context = texts[place.document][max(0, place.at - CONTEXT) : place.at]
    first = context.find("\n")
    if 0 <= first < CONTEXT // 2:  # from a line's beginning, where that leaves enough
        context = context[first + 1 :]
    return Item(
        task=task,
        id=f"{place.document}-{place.at}",
        context=context,
        choices=choices,
        answer=answer,
        group="continuation" if task.startswith("continuation") else "syntax",
        document=str(place.document),
    )
