"""The training of a run in one process: builds, resumes, trains, evaluates and sums up."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import torch
from torch import nn

from moelaws.accounting.flops import train_flops_per_token
from moelaws.corpus.batches import Batches, Validation, shuffled, validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.model.transformer import Transformer
from moelaws.records.progress import reporting
from moelaws.records.provenance import collect
from moelaws.records.summary import RunSummary, Status
from moelaws.spec.errors import UserError
from moelaws.training.attempts import Attempts, NoRoomError
from moelaws.training.callbacks import Checkpoints, HistorySoFar, Progress, WeightsOnTheWay
from moelaws.training.device import device_name, give_back, lacks_memory, peak_of
from moelaws.training.evaluation import Evaluation, evaluate, sequences_at_once
from moelaws.training.expert_load import ExpertLoad, balance, drops
from moelaws.training.history import History
from moelaws.training.loop import Trainer
from moelaws.training.plan import TrainingPlan
from moelaws.training.ranks import Lacked
from moelaws.training.signals import Stop, Stopped

MEASURED = ("loss", "loss_se", "loss_beyond", "bits_per_byte")  # of a run's summary; None without


@dataclass(frozen=True)
class Outcome:
    summary: RunSummary
    provenance: dict[str, Any]
    history: History
    expert_load: ExpertLoad
    evaluation: Evaluation | None  # of completed runs
    model: Transformer | None  # of completed runs


def execute(plan: TrainingPlan, stop: Stop) -> Outcome:
    """Trains and evaluates, and continues from the checkpoint if there is a good one.

    Raises what ``run.train`` does, TakenOver if another trainer took the run, and Lacked if this
    process lacked memory and the run has others.
    """
    batches, texts, provenance = _data_and_provenance(plan)
    attempts, checkpoints = Attempts(plan), Checkpoints(plan, provenance)
    trainer: Trainer | None = None
    evaluation: Evaluation | None = None
    message = ""
    try:
        trainer = build_trainer(plan, batches, attempts)
        evaluation = _train_and_evaluate(plan, trainer, texts, attempts, checkpoints, stop)
        status: Status = "completed" if evaluation else "diverged"
    except (RuntimeError, MemoryError) as error:
        if not lacks_memory(error):
            raise
        if plan.ranks.size > 1 and not isinstance(error, NoRoomError):
            # The others are in the middle of a step, so only a new start can try less.
            attempts.fail()
            raise Lacked from error
        sequences = trainer.micro_batch if trainer else plan.config.smallest_micro_batch
        status = "out_of_memory"
        message = (
            f"on {provenance['device']}, with {sequences} sequences at a time; a smaller "
            f"balance_group, context or model takes less ({str(error).partition(chr(10))[0]})"
        )
    attempts.end()
    dropping = drops(plan.config.model.ffn)
    history, expert_load = History(), ExpertLoad(plan.config.steps, 0, dropping)
    seconds, model = 0.0, None
    provenance["micro_batch"] = trainer.micro_batch if trainer else plan.options.micro_batch
    if trainer:
        history, expert_load = trainer.history, trainer.expert_load
        seconds, model = trainer.seconds, trainer.model if evaluation else None
        trainer = None  # the record takes some memory, too
    give_back(torch.device(plan.options.device))
    history.settle()
    tokens = len(history) * plan.config.batch * plan.config.model.context
    flops = train_flops_per_token(plan.config.model, "sparsity") * tokens
    shared_steps = min(checkpoints.shared_steps, len(history))
    counts_LE = evaluation.counts_LE if evaluation else None
    summary = RunSummary(
        run_id=plan.config.run_id,
        status=status,
        **{name: getattr(evaluation, name, None) for name in MEASURED},
        train_loss=history.recent_loss(),
        steps=len(history),
        tokens=tokens,
        epochs=len(history) * plan.config.batch / batches.windows,
        balance=None if counts_LE is None else balance(counts_LE, dropping=dropping),
        shared_steps=shared_steps,
        flops=flops,
        flops_spent=flops * (1 - shared_steps / max(1, len(history))),
        wall_seconds=checkpoints.wall_seconds(),
        shared_seconds=checkpoints.shared_seconds,
        tokens_per_second=tokens / seconds if seconds else 0.0,
        peak_memory_bytes=plan.ranks.maximum(peak_of(plan.options.device)),
        message=message,
    )
    return Outcome(summary, provenance, history, expert_load, evaluation, model)


def _data_and_provenance(plan: TrainingPlan) -> tuple[Batches, list[Validation], dict[str, Any]]:
    """Opens and checks the data of ``plan``, and records the code and machine that train it.

    The held-out text is in sequences of the run's context and, if it asks for them, in longer ones.
    """
    config, context = plan.config, plan.config.model.context
    data = PreparedCorpus.open(plan.corpus)
    if data.corpus != config.corpus:
        raise UserError(
            f"{plan.corpus} holds corpus {data.corpus.corpus_id}, but run {config.run_id} is "
            f"on {config.corpus.corpus_id}; prepare that one (moelaws corpus) or name its folder"
        )
    if config.shuffle == "tokens":
        last = config.corpus.vocab_size - 1  # the entry that ends a document
        data = replace(data, train=shuffled(data.train, last, config.seed))
    batches = Batches(data, config.batch, context, config.seed, config.max_epochs)
    batches.check(config.steps)
    provenance = {
        **collect(),
        "device": device_name(plan.options.device),
        "devices": plan.ranks.size,
        "backend": plan.backend.name,
        "deterministic": plan.options.deterministic,
        "threads": torch.get_num_threads(),
        "corpus_files": data.shard_hashes,
        "resumed_from": [],
    }
    sequences = config.evaluation.sequences
    lengths = dict.fromkeys((1, config.evaluation.longer))  # both hold about as many tokens
    texts = [validation(data, max(1, sequences // n), n * context) for n in lengths]
    return batches, texts, provenance


def build_trainer(plan: TrainingPlan, batches: Batches, attempts: Attempts) -> Trainer:
    """Builds the model on its device, and the trainer with the micro-batch to try first."""
    config, options, ranks = plan.config, plan.options, plan.ranks
    smallest = config.smallest_micro_batch
    whole = math.ceil(config.groups / ranks.size) * smallest
    whole = min(options.micro_batch or whole, whole)
    micro_batch = attempts.largest("training", whole, smallest)
    attempts.begin("training", micro_batch, micro_batch < whole)
    place: Callable[[nn.Module], None] = methodcaller("to", options.device)
    if ranks.size > 1:
        from moelaws.training.sharding import Sharding  # loads much of torch

        place = Sharding(ranks, options.device)
    model = Transformer(config.model, config.seed, plan.backend, config.precision, place)
    trainer = Trainer(config, model, batches, micro_batch, ranks=ranks)
    trainer.count_for(plan.trunk.branches if plan.trunk else ())
    return trainer


def _train_and_evaluate(
    plan: TrainingPlan,
    trainer: Trainer,
    texts: Sequence[Validation],
    attempts: Attempts,
    checkpoints: Checkpoints,
    stop: Stop,
) -> Evaluation | None:
    """Returns the evaluation on the held-out ``texts``, or None if the run diverged.

    On a signal it writes a checkpoint and raises Stopped.
    """
    kept, micro_batch = WeightsOnTheWay(plan), trainer.micro_batch
    checkpoints.resume(trainer, kept)
    if trainer.micro_batch < micro_batch:
        attempts.begin("training", trainer.micro_batch, lacked=False)
    # Processes build the model and read the checkpoint at different speeds. All wait here for the
    # slowest, because a collective computation would give up after minutes.
    plan.ranks.broadcast(True)
    try:
        with reporting() as report:
            watched = [HistorySoFar(plan, checkpoints.provenance)] if plan.ranks.is_first else []
            shown = [Progress(report)] if plan.options.progress else []
            trainer.callbacks = [attempts, kept, stop, *shown, *watched, checkpoints]
            if not trainer.run():
                checkpoints.share_end(trainer)
                return None
            evaluation, *longer = (_evaluate(trainer, x, attempts, stop) for x in texts)
    except Stopped as stopped:
        try:
            checkpoints.save(trainer)
            stopped.saved = True
        except UserError as error:
            plan.log(str(error))
        attempts.end()
        raise
    for other in longer:
        beyond = float(other.by_position_N[plan.config.model.context :].mean())
        evaluation = replace(evaluation, loss_beyond=beyond if math.isfinite(beyond) else None)
    return evaluation if math.isfinite(evaluation.loss) else None


def _evaluate(trainer: Trainer, held_out: Validation, attempts: Attempts, stop: Stop) -> Evaluation:
    """Evaluates on the held-out set, in smaller and smaller batches if memory lacks."""
    plan, context, model = attempts.plan, held_out.documents.shape[1], trainer.model
    model.set_context(context)
    trained = trainer.micro_batch * plan.config.model.context
    whole = sequences_at_once(plan.options.device, trained, context)
    batch = attempts.largest("evaluation", whole, 1)
    while True:
        plan.check_lock()
        attempts.begin("evaluation", batch, batch < whole)
        try:
            check = partial(stop.check_all, plan.ranks)
            return evaluate(model, held_out, batch, check, plan.ranks)
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error) or batch == 1 or plan.ranks.size > 1:
                raise
        batch //= 2
        give_back(torch.device(plan.options.device))
