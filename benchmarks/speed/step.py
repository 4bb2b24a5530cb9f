"""A whole optimizer step of a model with experts, against the dense model of equal active FLOPs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.accounting.flops import train_flops_per_token
from moelaws.model.backends import BACKENDS, Backend
from moelaws.model.transformer import Transformer
from moelaws.spec.run import RunConfig
from moelaws.training.loop import Trainer
from speed.clock import speed, take_turns

BATCHES = 16


class Words:
    """Batches of token ids by Zipf's law, drawn beforehand: reading is no part of a step here."""

    def __init__(self, config: RunConfig) -> None:
        g = np.random.default_rng(0)
        shape = (BATCHES, config.batch, config.model.context + 1)
        self.batches = g.zipf(1.2, shape).astype(np.int64) % config.model.vocab_size
        self.turn = 0

    def next(self) -> NDArray[np.int64]:
        self.turn += 1
        batch: NDArray[np.int64] = self.batches[self.turn % BATCHES]
        return batch

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


def configuration(
    ffn: dict[str, Any],
    model: dict[str, int],
    batch: int,
    precision: str = "fp32",
    optimizer: str = "adamw",
) -> RunConfig:
    """A run of many steps; ``model`` has d_model, n_layers, n_heads, context and vocab_size."""
    return RunConfig.model_validate(
        {
            "model": {"n_kv": model["n_heads"], "ffn": ffn, **model},
            "corpus": {"source": {"digest": "none"}, "vocab_size": model["vocab_size"]},
            "steps": 1_000_000,
            "batch": batch,
            "balance_group": batch,
            "optimizer": {"lr": 1e-3, **({} if optimizer == "adamw" else {"kind": optimizer})},
            "precision": precision,
        }
    )


def trainer_of(
    config: RunConfig, backend: Backend = BACKENDS["torch"], device: str = "cpu"
) -> Trainer:
    model = Transformer(config.model, config.seed, backend, config.precision)
    return Trainer(config, model.to(device), Words(config))


def measure_step(
    model: dict[str, int], experts: dict[str, int], batch: int, seconds: float
) -> dict[str, Any]:
    """Speed of the model with experts as a share of the dense one's; CPU, fp32.

    ``experts`` has n_experts, top_k and d_expert; the dense layers have the width top_k * d_expert.
    The router is the experts' own cost.
    """
    d_ffn = experts["top_k"] * experts["d_expert"]
    configs = {
        "moe": configuration({"kind": "moe", **experts}, model, batch),
        "dense": configuration({"kind": "dense", "d_ffn": d_ffn}, model, batch),
    }
    # A step as the training loop makes it: losses, backward, optimizer, telemetry.
    times = take_turns({name: trainer_of(c).train_step for name, c in configs.items()}, seconds)
    tokens = batch * model["context"]
    numbers: dict[str, Any] = {
        **model,
        **experts,
        "d_ffn_of_the_dense_model": d_ffn,
        "batch": batch,
    }
    for name, config in configs.items():
        best = min(times[name])
        flops = train_flops_per_token(config.model, "six_n") * tokens
        numbers |= {
            f"{name}_seconds": best,
            f"{name}_tokens_per_second": tokens / best,
            f"{name}_gflops": flops / best / 1e9,
        }
    return {**numbers, "share": speed(times, "moe", "dense")}
