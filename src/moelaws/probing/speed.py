"""Measures how fast configurations train and what memory a step takes, in turns."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from moelaws.corpus.batches import Batches, Validation
from moelaws.model.backends import choose_backend
from moelaws.model.casting import casting_once
from moelaws.model.transformer import Transformer
from moelaws.records.memory import keep_freed_memory
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.run import RunConfig
from moelaws.training import columns
from moelaws.training.device import choose_device, device_name, lacks_memory, threads
from moelaws.training.evaluation import evaluate, sequences_at_once
from moelaws.training.loop import Trainer

REPEATS = 15  # rounds
ENDLESS = 1_000_000  # steps: no measurement reaches the end of the schedule
GENERATED = 4  # tokens of a turn, the last ones of the context
LEVEL, RESAMPLES = 0.9, 2000  # the level of a ratio's interval, and how many resamples it rests on

COLUMNS = table_beside(__file__)  # column -> its unit and meaning


class RandomTokens(Batches):
    """Batches of random token ids in place of a text; no measurement is resumed."""

    def __init__(self, config: RunConfig) -> None:
        self.generator = np.random.default_rng(config.seed)
        self.vocab_size = config.model.vocab_size
        self.shape = (config.batch, config.model.context + 1)

    def next(self) -> NDArray[np.int64]:
        """Returns token ids (batch, context + 1)."""
        return self.generator.integers(self.vocab_size, size=self.shape)


class SteppedTrainer(Trainer):
    """The trainer of a run, on random tokens, which makes one step at a time.

    A step has the batch, the balance groups, the precision and the optimizer of the run, and the
    back end of the experts that the run would choose.
    """

    def __init__(self, config: RunConfig, device: str) -> None:
        self.backend, _ = choose_backend("auto", config.model, device, config.precision)
        model = Transformer(config.model, config.seed, self.backend, config.precision).to(device)
        endless = config.model_copy(update={"steps": ENDLESS})
        super().__init__(endless, model, RandomTokens(config))
        tokens = self.data.next()
        targets = np.zeros_like(tokens[:, 1:])
        self.held_out = Validation(tokens, targets, targets + 1, domains=np.array([""]))

    def evaluate(self) -> None:
        """Measures the held-out loss of as many random tokens as a step has, as a run does."""
        context = self.config.model.context
        sequences = sequences_at_once(self.device.type, self.micro_batch * context, context)
        evaluate(self.model, self.held_out, sequences)

    def generate(self) -> None:
        """Generates the last tokens of one context, each the most likely one after all before it.

        The model keeps no keys and values, so each token computes the whole sequence again.
        """
        context = self.config.model.context
        tokens_BN = self.upload(self.held_out.tokens[:1, : max(1, context + 1 - GENERATED)])
        with torch.no_grad(), casting_once():
            for _ in range(GENERATED):
                logits_TV, _ = self.model(tokens_BN[:, -context:])
                tokens_BN = torch.cat((tokens_BN, logits_TV[-1:].argmax(-1, keepdim=True)), dim=1)

    def memory(self) -> dict[str, float]:
        """Returns the bytes of the state, and those that a step takes beside it.

        Each storage that the forward pass saves counts once, however many tensors share it; casts
        of parameters to another type count, parameters do not.
        """
        # By address; this holds the storages, so that no address is used a second time.
        saved: dict[int, torch.UntypedStorage] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            saved[storage.data_ptr()] = storage
            return tensor

        parameters = self.optimizer.whole
        with casting_once(), saved_tensors_hooks(keep, lambda tensor: tensor):
            self._micro_batch(self.upload(self.data.next()), 0)
        gradients = [p.grad for p in parameters if p.grad is not None]
        state = [*parameters, *gradients, *self.optimizer.first, *self.optimizer.second]
        constant = (*parameters, *self.model.buffers())
        for tensor in constant:
            saved.pop(tensor.untyped_storage().data_ptr(), None)
        activations = sum(storage.nbytes() for storage in saved.values())
        saved.clear()
        self.optimizer.drop_gradients()
        return {
            "state_bytes": sum(tensor.nbytes for tensor in state),
            "activation_bytes": activations,
            "gpu_step_bytes": self._gpu_step_bytes(),
        }

    def _gpu_step_bytes(self) -> float:
        if self.device.type != "cuda":
            return math.nan
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self.train_step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


def measure(
    configs: Sequence[RunConfig], device: str = "auto", repeats: int = REPEATS, seed: int = 0
) -> list[dict[str, Any]]:
    """Times a training step, a forward pass and the generation of a token by each configuration.

    Returns a row for each configuration, with the names of ``COLUMNS``. In each of the ``repeats``
    rounds every configuration has its turn, in a random order, so that a slow period of the machine
    slows all alike. Ratios compare times of one round. The models of all configurations, untrained,
    and their optimizers are in memory at the same time. Unlike a run, this waits for the GPU before
    and after each step.

    The ``device`` is auto, cpu or cuda; the ``seed`` is that of the turns' orders and of the
    bootstrap. Raises UserError where there is no such device, or not enough memory for all.
    """
    torch.set_num_threads(threads())
    keep_freed_memory()
    device = choose_device(device)
    try:
        return _measure(configs, device, repeats, seed)
    except (RuntimeError, MemoryError) as error:
        if not lacks_memory(error):
            raise
        raise UserError(
            f"{device_name(device)} has not enough memory for {len(configs)} configurations side "
            "by side: measure fewer at a time, or smaller ones"
        ) from None


def _measure(
    configs: Sequence[RunConfig], device: str, repeats: int, seed: int
) -> list[dict[str, Any]]:
    trainers = [SteppedTrainer(config, device) for config in configs]
    memory = []
    for trainer in trainers:
        trainer.train_step()  # warms up, and makes the micro-batch smaller if memory is short
        trainer.evaluate()
        trainer.generate()
        memory.append(trainer.memory())
    # Seconds, by round and configuration
    times = step_RC, evaluation_RC, generation_RC = np.empty((3, repeats, len(configs)))
    for turn, order in enumerate(orders(len(configs), repeats, seed)):
        for place in order:
            trainer = trainers[place]
            calls = trainer.train_step, trainer.evaluate, trainer.generate
            for seconds_RC, call in zip(times, calls, strict=True):
                seconds_RC[turn, place] = _seconds(call, device)
    tokens_C = np.array([config.batch * config.model.context for config in configs])
    evaluation_C = np.median(evaluation_RC, axis=0)
    low_C, median_C, high_C = np.quantile(step_RC, (0.25, 0.5, 0.75), axis=0)
    of_configuration = {
        "step_seconds": median_C,
        "step_seconds_low": low_C,
        "step_seconds_high": high_C,
        "tokens_per_second": tokens_C / median_C,
        **_over_first("time_ratio", step_RC / tokens_C, seed),
        "evaluation_seconds": evaluation_C,
        "evaluation_tokens_per_second": tokens_C / evaluation_C,
        "generation_seconds": np.median(generation_RC, axis=0) / GENERATED,
        **_over_first("generation_ratio", generation_RC, seed),
    }
    machine = {"device": device_name(device), "threads": torch.get_num_threads()}
    return [
        {
            "run_id": config.run_id,
            **{name: float(values_C[place]) for name, values_C in of_configuration.items()},
            **memory[place],
            "micro_batch": trainer.micro_batch,
            "rounds": repeats,
            "backend": trainer.backend.name,
            **machine,
        }
        for place, (config, trainer) in enumerate(zip(configs, trainers, strict=True))
    ]


def orders(count: int, rounds: int, seed: int) -> NDArray[np.int64]:
    """Returns the order of the turns in each round, (rounds, count): a permutation a row."""
    generator = np.random.default_rng(seed)
    return np.array([generator.permutation(count) for _ in range(rounds)])


def _over_first(name: str, times_RC: NDArray[np.float64], seed: int) -> dict[str, Any]:
    """Returns the median ratio to the first configuration in the same round, and its interval."""
    ratio_RC = times_RC / times_RC[:, :1]
    low_C, high_C = median_interval(ratio_RC, seed)
    return {name: np.median(ratio_RC, axis=0), f"{name}_low": low_C, f"{name}_high": high_C}


def median_interval(
    values_RC: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the ends, (C,) each, of a 90 % interval of each column's median, by bootstrap."""
    rounds = len(values_RC)
    picks_BR = np.random.default_rng(seed).integers(rounds, size=(RESAMPLES, rounds))
    medians_BC = np.median(values_RC[picks_BR], axis=1)
    low_C, high_C = np.quantile(medians_BC, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return low_C, high_C


def _seconds(call: Callable[[], None], device: str) -> float:
    """Returns how long a call takes, until the device has done all of its work."""
    wait = torch.cuda.synchronize if device == "cuda" else time.perf_counter
    wait()
    began = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - began


# Writes measured rows to a path.
write_rows = partial(columns.write_rows, about=COLUMNS)
