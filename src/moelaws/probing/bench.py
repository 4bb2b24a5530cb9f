"""Scores of a run's kept weights on tasks: how often they choose the right answer, in what bits.

The probability of a choice is that of its tokens after the context. Context and choice are
tokenised together and split where the context's tokens end, as in lm-evaluation-harness, so that
both give the same numbers. If they are longer than the model's context, only their end is read.

Shapes: B sequences, N positions, T tokens of choices, V vocabulary.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from moelaws.corpus.tokenizer import Tokenizer
from moelaws.files.layout import TOKENIZER
from moelaws.model.casting import casting_once
from moelaws.model.transformer import Transformer
from moelaws.records.tensors import read_kept
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.tasks.item import Item, by_task
from moelaws.training import columns, weights
from moelaws.training.device import on_device, threads
from moelaws.training.evaluation import clustered_se

TOKENS = {"cpu": 2048, "cuda": 16_384}  # in a batch, at most; fewer do not fill a GPU


class Answer(NamedTuple):
    """A choice's log-probability in nats, and whether greedy decoding would have produced it."""

    nats: float
    greedy: bool


def task_score(items: Sequence[Item], answers: Sequence[Sequence[Answer]]) -> dict[str, Any]:
    """Returns a task's columns of ``COLUMNS``, means over its items, but for the step's.

    ``answers`` has the model's answer to each choice of each item. Standard errors count documents.
    """
    right, per_byte, bits = np.empty((3, len(items)))
    for i, (item, said) in enumerate(zip(items, answers, strict=True)):
        size = [len(choice.encode()) for choice in item.choices]
        nats = [answer.nats for answer in said]
        bits[i] = -nats[item.answer] / math.log(2) / size[item.answer]
        if len(said) == 1:
            right[i] = per_byte[i] = said[0].greedy
        else:
            right[i] = int(np.argmax(nats)) == item.answer
            per_byte[i] = int(np.argmax(np.divide(nats, size))) == item.answer
    clusters = np.unique([item.cluster for item in items], return_inverse=True)[1]
    choices = np.array([len(item.choices) for item in items])

    def error(values: NDArray[np.float64]) -> float:
        se = clustered_se(values, clusters)
        return math.nan if se is None else se

    means = {"accuracy": right, "accuracy_per_byte": per_byte, "bits_per_byte": bits}
    return {
        "task": items[0].task,
        "group": items[0].group,
        "items": len(items),
        "documents": int(clusters.max()) + 1,
        "chance": float(np.where(choices > 1, 1 / choices, 0).mean()),
        **{name: float(values.mean()) for name, values in means.items()},
        **{f"{name}_se": error(values) for name, values in means.items()},
    }


def score(
    model: Transformer, tokenizer: Tokenizer, items: Sequence[Item], context: int
) -> list[dict[str, Any]]:
    """Returns the scores of each task among ``items``, in the order in which tasks first come.

    A task with a choice of more tokens than the model's ``context`` is left out; a UserError is
    raised if all are.
    """
    scores, longest = [], 0
    for questions in by_task(items).values():
        places = [(item, i) for item in questions for i in range(len(item.choices))]
        tokens, scored = zip(*(_sequence(tokenizer, *place) for place in places), strict=True)
        longest = max(scored)
        if longest <= context:
            cut = [whole[-(context + 1) :] for whole in tokens]
            said = iter(_answers(model, cut, scored, tokenizer.end_of_document))
            answers = [[next(said) for _ in item.choices] for item in questions]
            scores.append(task_score(questions, answers))
    if not scores:
        raise UserError(
            f"a choice has {longest} tokens, more than the model's context of {context}, in each "
            "task; ask shorter ones, or a model of a longer context"
        )
    return scores


@cache  # runs of a batch get the same questions
def _sequence(tokenizer: Tokenizer, item: Item, choice: int) -> tuple[list[int], int]:
    """Returns the tokens of context and choice, and how many at their end are scored.

    An end of document stands for an empty context.
    """
    whole = tokenizer.encode(item.contexts[choice] + item.choices[choice])
    # Spaces at a context's end and the next word are one token, which counts with the choice.
    before = tokenizer.encode(item.contexts[choice].rstrip())
    scored = max(1, len(whole) - len(before))  # 1 if the choice only lengthens the last token
    alone = scored == len(whole)
    return [tokenizer.end_of_document, *whole] if alone else whole, scored


def _answers(
    model: Transformer, tokens: Sequence[list[int]], scored: Sequence[int], padding: int
) -> list[Answer]:
    """Returns the model's answer for the last ``scored`` tokens of each sequence."""
    device = model.embedding.device
    # Choices of one token share all that a model reads.
    of_input: dict[tuple[int, ...], list[int]] = {}
    for i, whole in enumerate(tokens):
        of_input.setdefault(tuple(whole[:-1]), []).append(i)
    answers: dict[int, Answer] = {}
    model.eval()
    with torch.no_grad(), casting_once():
        for read in _batches(of_input, TOKENS[device.type]):
            width = len(read[-1])
            # Attention is causal: padding changes nothing.
            batch = torch.tensor([t + (padding,) * (width - len(t)) for t in read], device=device)
            choices = [(row, i) for row, inputs in enumerate(read) for i in of_input[inputs]]
            rows = [np.arange(-scored[i], 0) + row * width + len(read[row]) for row, i in choices]
            targets = [np.array(tokens[i][-scored[i] :]) for _, i in choices]
            row_T, target_T = (
                torch.from_numpy(np.concatenate(x)).to(device) for x in (rows, targets)
            )
            logits_TV, _ = model(batch, head=partial(_logits_of, row_T))
            nats_T = -F.cross_entropy(logits_TV, target_T, reduction="none").double()
            greedy_T = logits_TV.argmax(-1) == target_T
            ends = np.cumsum([len(x) for x in rows])[:-1].tolist()
            pieces = nats_T.cpu().tensor_split(ends), greedy_T.cpu().tensor_split(ends)
            for (_, i), nats, greedy in zip(choices, *pieces, strict=True):
                answers[i] = Answer(float(nats.sum()), bool(greedy.all()))
    return [answers[i] for i in range(len(tokens))]


def _logits_of(row_T: Tensor, h_TD: Tensor, head_VD: Tensor) -> Tensor:
    """Returns the logits at some of the positions, in fp32."""
    return F.linear(h_TD[row_T], head_VD).float()


def _batches(inputs: Iterable[tuple[int, ...]], most: int) -> Iterator[list[tuple[int, ...]]]:
    """Yields sequences of similar length, the longest of a batch last.

    A batch has at most so many tokens, or one sequence.
    """
    batch: list[tuple[int, ...]] = []
    for tokens in sorted(inputs, key=len):
        if batch and (len(batch) + 1) * len(tokens) > most:
            yield batch
            batch = []
        batch.append(tokens)
    if batch:
        yield batch


_tokenizer = cache(Tokenizer.load)

COLUMNS = table_beside(__file__)  # column -> its unit and meaning


def bench(
    folder: Path, corpus: Path, items: Sequence[Item], device: str = "cpu"
) -> list[dict[str, Any]]:
    """Scores a run's kept weights in ``folder`` on ``items``; returns a row a task and kept step.

    ``corpus`` is the folder of its prepared corpus; ``device`` is auto, cpu or cuda. Raises
    UserError where there are no weights, no such device, or no task has choices that fit into the
    model's context.
    """
    torch.set_num_threads(threads())
    tokenizer = _tokenizer(corpus / TOKENIZER)
    rows: list[dict[str, Any]] = []
    for step in (*read_kept(folder).steps, None):
        config, model = weights.load(folder, step)
        if tokenizer.vocab_size != config.model.vocab_size:
            raise UserError(f"{corpus} is not the corpus of run {config.run_id}")
        done = config.steps if step is None else step
        context = config.model.context
        about = {"step": done, "tokens": done * config.batch * context}
        ask = partial(score, tokenizer=tokenizer, items=items, context=context)
        rows += [{**about, **scored} for scored in on_device(device, model, ask)]
    return rows


# Writes scores to a path, a row each; a run that left no weights has no rows.
write_rows = partial(columns.write_rows, about=COLUMNS)
