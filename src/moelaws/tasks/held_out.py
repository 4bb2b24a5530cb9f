"""Tasks from a corpus' own held-out documents: they need no download, and every run has them.

- ``continuation_16`` and ``continuation_64``: which of four texts of so many characters comes next?
  The other three continue other documents.
- ``brackets``: which bracket closes here? Each kind in the text is right equally often.
- ``indentation``: is the next line of code indented less, equally or more? Each is right equally
  often.

A question is asked where a word ends, a bracket closes or a line ends, and the text before it is
its context. The same documents and seed give the same items under every version of NumPy.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from moelaws.corpus.batches import random_order
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.files.layout import TOKENIZER
from moelaws.spec.errors import UserError
from moelaws.tasks.item import Item

CONTEXT = 160  # characters before a question, at most
LENGTHS = (4, 16, 64)  # characters of a continuation
ITEMS = 180  # of a task
FEWEST = 60  # items of a task that is worth asking: its accuracy has an error of about 0.06
PER_DOCUMENT = 8  # items of a task and kind, at most
DOCUMENTS = 1000  # at most so many documents are read; they are in a random order
LONGEST = 1 << 15  # characters of each that are read
CLOSING = ")]}"
STEP = 4  # spaces of an indentation

# Contexts end in a letter or digit, and the next character is neither: byte-level tokenizers do not
# join these, so that a choice has tokens of its own. No context ends in spaces, as harnesses move
# them to the choice.
_WORD_ENDS = re.compile(r"(?<=[A-Za-z0-9])(?=[^\w'])")
_CLOSING = re.compile(rf"(?<=[A-Za-z0-9])[{re.escape(CLOSING)}]")
# A line that is not blank, followed by another one, which the next match may begin with.
_TWO_LINES = re.compile(r"^(?P<line>(?P<here> *)\S(?:.*\S)?)(?=\n(?P<next> *)\S)", re.M)


class Place(NamedTuple):
    """A place for a question, behind ``text[:at]``; there are equally many of each ``kind``."""

    document: int
    at: int
    kind: int


def held_out_items(corpus: PreparedCorpus, seed: int = 0) -> list[Item]:
    """Returns the items of each task for which the held-out documents of ``corpus`` suffice.

    Raises UserError if they suffice for none.
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
    # A token has at least one character, so that ``LONGEST`` tokens are enough.
    texts = (corpus.validation[a : min(b - 1, a + LONGEST)] for a, b in pairwise(starts))
    return [tokenizer.decode(tokens.tolist())[:LONGEST] for tokens in texts]


def continuations(texts: Sequence[str], length: int, seed: int) -> list[Item]:
    """Returns items with four continuations of ``length`` characters, one of them the true one."""

    def kinds(text: str) -> Iterator[tuple[int, int]]:
        return (
            (match.start(), 0) for match in _WORD_ENDS.finditer(text, 0, max(0, len(text) - length))
        )

    chosen = _chosen(texts, kinds, seed + length)
    following = {place: texts[place.document][place.at : place.at + length] for place in chosen}
    items = []
    for i, place in enumerate(chosen):
        behind = (*chosen[i + 1 :], *chosen[:i])
        foreign = [following[other] for other in behind if other.document != place.document]
        others = [text for text in dict.fromkeys(foreign) if text != following[place]][:3]
        if len(others) == 3:
            answer = i % 4
            choices = (*others[:answer], following[place], *others[answer:])
            items.append(_item(f"continuation_{length}", texts, place, choices, answer))
    return items if len(items) >= FEWEST else []


def closings(texts: Sequence[str], seed: int) -> list[Item]:
    """Returns items with the closing brackets that the texts have, equally many of each."""

    def kinds(text: str) -> Iterator[tuple[int, int]]:
        return ((match.start(), CLOSING.index(match[0])) for match in _CLOSING.finditer(text))

    chosen = _chosen(texts, kinds, seed)
    brackets = sorted({place.kind for place in chosen})
    if len(brackets) < 2:
        return []
    choices = tuple(CLOSING[kind] for kind in brackets)
    return [_item("brackets", texts, p, choices, brackets.index(p.kind)) for p in chosen]


def indentations(texts: Sequence[str], seed: int) -> list[Item]:
    """Returns items whose next line is indented by one step less, equally, or by one step more.

    Each choice is that indentation and the first word of the true line.
    """

    def kinds(text: str) -> Iterator[tuple[int, int]]:
        for match in _TWO_LINES.finditer(text):
            change = len(match["next"]) - len(match["here"])
            if len(match["here"]) >= STEP and change in (-STEP, 0, STEP):
                yield match.end("line"), change // STEP + 1

    items = []
    for place in _chosen(texts, kinds, seed):
        line = texts[place.document][place.at + 1 :].partition("\n")[0]
        word = line.split(maxsplit=1)[0]
        least = len(line) - len(line.lstrip(" ")) - place.kind * STEP
        choices = tuple("\n" + " " * (least + step * STEP) + word for step in range(3))
        items.append(_item("indentation", texts, place, choices, place.kind))
    return items


def _chosen(
    texts: Sequence[str], kinds: Callable[[str], Iterator[tuple[int, int]]], seed: int
) -> list[Place]:
    """Draws places, equally many of each kind and few in one document.

    ``kinds`` yields the places of a text, each with its kind. There are none if the texts have too
    few.
    """
    by_kind: dict[int, list[Place]] = {}
    for document, text in enumerate(texts):
        places = [(at, kind) for at, kind in kinds(text) if at >= CONTEXT // 2]
        taken: Counter[int] = Counter()
        for i in random_order(len(places), seed, document):
            at, kind = places[i]
            taken[kind] += 1
            if taken[kind] <= PER_DOCUMENT:
                by_kind.setdefault(kind, []).append(Place(document, at, kind))
    by_kind = {k: p for k, p in by_kind.items() if len(p) * len(by_kind) >= FEWEST}
    if not by_kind:
        return []
    each = min(ITEMS // len(by_kind), *map(len, by_kind.values()))
    shuffled = [
        [by_kind[kind][i] for i in random_order(len(by_kind[kind]), seed, len(texts) + kind)[:each]]
        for kind in sorted(by_kind)
    ]
    # The kinds take turns: among the first n items their numbers differ by at most one.
    return [place for turn in zip(*shuffled, strict=True) for place in turn]


def _item(
    task: str, texts: Sequence[str], place: Place, choices: tuple[str, ...], answer: int
) -> Item:
    context = texts[place.document][max(0, place.at - CONTEXT) : place.at]
    first = context.find("\n")
    # The context begins with a line, if enough of it is left then.
    if 0 <= first < len(context) - CONTEXT // 2:
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
